// Reports and dumps of compiles.
#include "rlx/runtime/reports.h"

#include <cstdio>
#include <map>
#include <mutex>
#include <set>

#include "rlx/base/forks.h"
#include "rlx/runtime/env.h"

namespace rlx {
namespace {

bool log(const std::string& text, const char* variable, bool verbose) {
  if (!verbose && !env_flag("RLX_VERBOSE") && !env_flag(variable)) return false;
  std::fprintf(stderr, "%s\n", text.c_str());
  return true;
}

}  // namespace

bool maybe_log_fusion(const CompileResult& r, bool verbose) {
  return log(r.fusion.text(), "RLX_FUSION_REPORT", verbose);
}
bool maybe_log_dispatch(const CompileResult& r, bool verbose) {
  return log(r.dispatch.text(), "RLX_DISPATCH_REPORT", verbose);
}

std::string maybe_dump_pipeline(const CompileResult& r) {
  const std::optional<std::string> path = env_get("RLX_IR_DUMP");
  if (!path || path->empty()) return {};
  static auto& mutex = *new ProcessMutex;
  static auto& started = *new std::set<std::string>;  // files that this process has written
  std::lock_guard lock(mutex);
  std::string file = dump_file(r, *path);
  dump_pipeline(r, *path, /*append=*/started.contains(file));
  started.insert(file);
  return file;
}

std::shared_ptr<Trace> env_trace() {
  const std::optional<std::string> path = env_get("RLX_TRACE");
  if (!path || path->empty()) return nullptr;
  struct Traces {
    ProcessMutex mutex;
    std::map<std::string, std::shared_ptr<Trace>> by_path;
  };
  static Traces* const all = new Traces;  // written at the end of the process, so never destroyed before
  std::lock_guard lock(all->mutex);
  const auto [at, is_new] = all->by_path.try_emplace(*path);
  if (is_new) try {
      at->second = std::make_shared<Trace>(*path);
    } catch (const Error& e) {
      std::fprintf(stderr, "rlx: warning: RLX_TRACE: %s\n", e.what());
    }
  return at->second;
}

}  // namespace rlx
