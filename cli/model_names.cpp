// Finds models by path or by name, and shows downloads.
#include "cli/model_names.h"

#include <cstdio>

#include "rlx/hub/curl_transport.h"

namespace rlx::cli {

PullOptions PullNotes::options() {
  PullOptions o;
  if (quiet_) return o;
  o.note = [this](const std::string& text) {
    clear();
    std::fprintf(stderr, "note: %s\n", text.c_str());
  };
  o.progress = [this](std::uint64_t done, std::uint64_t total) {
    constexpr int kMib = 20;
    if (!bar_) bar_.emplace("downloading, MiB", static_cast<std::size_t>(total >> kMib));
    bar_->update(static_cast<std::size_t>(done >> kMib));
  };
  return o;
}
void PullNotes::clear() {
  if (bar_) bar_->clear();
  bar_.reset();
}

std::string model_path(const std::string& name) {
  CurlTransport transport;
  PullNotes notes;
  std::string path = find_model(name, transport, notes.options());
  notes.clear();
  return path;
}

}  // namespace rlx::cli
