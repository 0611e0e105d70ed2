// The errors of failed allocations, and how public calls guarantee them.
//
// Calls that load, compile and run (Session, CompiledGraph, SentenceEncoder, tokenisers, the readers and writers of
// rlx/formats), and tensors without room for their elements, throw Error{OutOfMemory}. It names the buffer and its
// bytes if they are known, else the call. Calls that build, transform or print values in memory (Graph and its ops,
// Shape, Dim, text, transforms, passes, options) throw std::bad_alloc, as the standard containers in them do. After
// either error, the object that the call was to change is unchanged. docs/runtime.md lists the exceptions.
#pragma once

#include <new>
#include <string_view>

#include "rlx/error.h"

namespace rlx {

/// For the handlers of public calls. Throws Error{OutOfMemory} naming `call`. Without memory for that, it throws an
/// error that was made at program start and is copied without allocation.
[[noreturn]] void throw_out_of_memory(std::string_view call);

}  // namespace rlx
