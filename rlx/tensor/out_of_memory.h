// What failed allocations throw, and how public calls keep that promise.
//
// Calls that load, compile and run (Session, CompiledGraph, SentenceEncoder, tokenisers, the readers and writers of
// rlx/formats) and tensors that find no room for their elements throw Error{OutOfMemory}. It names the buffer and its
// bytes where they are known, else the call. Calls that build, transform or print values in memory (Graph and its ops,
// Shape, Dim, text, transforms, passes, options) throw std::bad_alloc, as the standard containers do that they are made
// of. After either, what the call was to change is as it was; docs/runtime.md lists the exceptions to that.
#pragma once

#include <new>
#include <string_view>

#include "rlx/error.h"

namespace rlx {

/// For the handlers of public calls: throws Error{OutOfMemory} that names `call`, or, when there is no memory for that
/// either, one that was made when the program started and that is copied without any.
[[noreturn]] void throw_out_of_memory(std::string_view call);

}  // namespace rlx
