// The error of a failed allocation, which must be possible to throw when there is no memory.
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

// What is thrown when an Error cannot be made any more; made while there is memory, before main. Its text is so short
// that it lies inside the string: a copy allocates nothing.
const Error& spare_error() {
  static const Error spare(ErrorCode::OutOfMemory, "none is left");
  return spare;
}
[[maybe_unused]] const Error& made_at_start = spare_error();

}  // namespace

void throw_out_of_memory(std::string_view call) {
  try {
    throw Error(ErrorCode::OutOfMemory, concat_text("there is no memory for what ", call, " makes"),
                "use smaller dimensions or files, or a machine with more memory");
  } catch (const std::bad_alloc&) {
  }
  throw Error(spare_error());
}

}  // namespace rlx
