// The error of a missing tensor.
#include "rlx/formats/missing_tensor.h"

#include "rlx/error.h"

namespace rlx {

void throw_no_tensor(std::string_view source, std::string_view name, const std::vector<std::string>& known) {
  const std::string held = known.empty()
                               ? "it holds no tensor at all"
                               : concat_text("none is near; it holds ", known.size(),
                                             known.size() == 1 ? " tensor: " : " tensors: ", quoted_names(known));
  throw Error(ErrorCode::NotFound, concat_text(source, " holds no tensor \"", name, "\""),
              did_you_mean(name, known, held));
}

}  // namespace rlx
