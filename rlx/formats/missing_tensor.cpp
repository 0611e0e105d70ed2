// The error of a missing tensor.
#include "rlx/formats/missing_tensor.h"

#include "rlx/error.h"

namespace rlx {

void throw_no_tensor(std::string_view source, std::string_view name, const std::vector<std::string>& known) {
  const std::string held = known.empty()
                               ? "the file has no tensors"
                               : concat_text("no name is similar; the file has ", known.size(),
                                             known.size() == 1 ? " tensor: " : " tensors: ", quoted_names(known));
  throw Error(ErrorCode::NotFound, concat_text(source, " has no tensor \"", name, "\""),
              did_you_mean(name, known, held));
}

}  // namespace rlx
