// The end of the interpreter.
#pragma once

namespace rlx::python {

/// Says that the calling thread is about to end the interpreter; it runs functions given to Python's atexit.
void note_ending_thread();

}  // namespace rlx::python
