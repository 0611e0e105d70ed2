// Counted allocations of the program of these tests, by its own operator new.
#pragma once

namespace rlx::test {

/// How many there were so far, on all threads.
long num_allocations();

}  // namespace rlx::test
