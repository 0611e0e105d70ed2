// Arguments that name a model: a path, or a name on a hub.
#pragma once

#include <optional>
#include <string>

#include "cli/terminal.h"
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

}  // namespace rlx::cli
