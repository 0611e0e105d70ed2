// Arguments that name a model: a path, or a name on a hub.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/arguments.h"
#include "cli/terminal.h"
#include "rlx/error.h"
#include "rlx/hub/hub.h"

namespace rlx::cli {

/// Says on the standard error what a pull does: notes and a progress bar.
class PullNotes {
 public:
  explicit PullNotes(bool quiet = false) : quiet_(quiet) {}
  PullNotes(const PullNotes&) = delete;
  PullNotes& operator=(const PullNotes&) = delete;
  /// Options whose functions refer to this object.
  PullOptions options();
  void clear();

 private:
  bool quiet_;
  std::optional<ProgressBar> bar_;
};

/// The path of a model: `name` itself if there is such a file or folder, else the model ORG/NAME[@REVISION][:FILE] of
/// the cache or of the hub (find_model).
std::string model_path(const std::string& name);

/// Adds --model, an encoder by its folder or name. `more` ends its help.
template <ArgumentValue T>
Argument add_model_option(Command cmd, T& model, std::string_view more = {}) {
  constexpr std::string_view what =
      "Model folder (config.json, tokenizer.json or vocab.txt, model.safetensors), or a name on a hub (rlx pull)";
  return cmd.add_option("--model", model, concat_text(what, more)).type_name("DIR");
}

}  // namespace rlx::cli
