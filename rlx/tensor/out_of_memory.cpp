// The error of a failed allocation. Throwing it must work without memory.
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

// The error for when no Error can be made any more. It is made before main, while there is memory. Its text is short
// enough for the string's inline buffer, so a copy allocates nothing.
const Error& spare_error() {
  static const Error spare(ErrorCode::OutOfMemory, "none is left");
  return spare;
}
[[maybe_unused]] const Error& made_at_start = spare_error();

}  // namespace

void throw_out_of_memory(std::string_view call) {
  try {
    throw Error(ErrorCode::OutOfMemory, concat_text("not enough memory for the result of ", call),
                "use smaller dimensions or files, or a machine with more memory");
  } catch (const std::bad_alloc&) {
  }
  throw Error(spare_error());
}

}  // namespace rlx
