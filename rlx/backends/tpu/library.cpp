// Plug-ins are opened with local symbols (RTLD_LOCAL), so that several can be loaded at once.
#include "rlx/backends/tpu/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <vector>

#include "rlx/base/environment.h"

namespace rlx::tpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWays =
    "run `pip install libtpu` on a machine with a TPU, or set RLX_TPU_PLUGIN to the path of a PJRT plug-in";

// Null, or the first required function that the plug-in lacks.
template <class... A>
const char* first_missing(const Library& library) {
  const char* missing = nullptr;
  ((missing = missing || library.has<A>() ? missing : abi::Call<A>::name), ...);
  return missing;
}
const char* what_it_lacks(const Library& library) {
  using namespace abi;  // for the names below
  return first_missing<ErrorDestroy, ErrorMessage, ErrorGetCode, PluginInitialize, EventDestroy, EventIsReady,
                       EventAwait, ClientCreate, ClientDestroy, ClientPlatformName, ClientPlatformVersion,
                       ClientAddressableDevices, ClientCompile, ClientBufferFromHostBuffer, LoadedExecutableDestroy,
                       LoadedExecutableExecute, abi::BufferDestroy, BufferToHostBuffer, BufferReadyEvent>(library);
}

[[noreturn]] void unusable(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::DeviceUnavailable, concat_text("the PJRT plug-in ", path, " ", why), kWays);
}

std::shared_ptr<const Library> load(const std::string& path) {
  // Plug-ins log to standard error by default. Users who want that set the variable.
  if (!std::getenv("TF_CPP_MIN_LOG_LEVEL")) ::setenv("TF_CPP_MIN_LOG_LEVEL", "3", 0);
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = ::dlerror();
    unusable(path, concat_text("cannot be loaded: ", why ? why : "the system gives no reason"));
  }
  void* const symbol = ::dlsym(handle, "GetPjrtApi");
  if (!symbol) unusable(path, "has no function GetPjrtApi, so it is not a PJRT plug-in");
  const abi::Api* api = reinterpret_cast<const abi::Api* (*)()>(symbol)();
  if (!api) unusable(path, "returned no table of functions");
  if (api->struct_size < sizeof(abi::Api) || api->pjrt_api_version.struct_size < sizeof(abi::Version))
    unusable(path, concat_text("returned a table of ", api->struct_size, " bytes, which is too short for PJRT"));
  if (api->pjrt_api_version.major_version != 0)
    unusable(path, concat_text("has PJRT ", api->pjrt_api_version.major_version, ".",
                               api->pjrt_api_version.minor_version, ", but this rlx supports version 0"));
  auto library = std::make_shared<const Library>(path, api);
  if (const char* missing = what_it_lacks(*library))
    unusable(path, concat_text("has PJRT ", library->api_version(), " without the function ", missing));
  auto initialize = abi::arguments<abi::PluginInitialize>();
  library->call({}, initialize);
  return library;
}

// The package folders of Python: of the active environment, of the program's own prefix, and of the system.
std::vector<fs::path> package_folders() {
  std::vector<fs::path> prefixes;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const std::string prefix = setting(name); !prefix.empty()) prefixes.emplace_back(prefix);
  std::error_code ignored;
  if (const fs::path program = fs::read_symlink("/proc/self/exe", ignored); !program.empty())
    prefixes.push_back(program.parent_path().parent_path());
  if (const std::string home = setting("HOME"); !home.empty()) prefixes.push_back(fs::path(home) / ".local");
  prefixes.insert(prefixes.end(), {"/usr/local", "/usr"});
  std::vector<fs::path> out;
  const std::string listed = setting("PYTHONPATH");
  for (std::size_t from = 0; from < listed.size();) {
    const std::size_t end = std::min(listed.find(':', from), listed.size());
    if (end != from) out.emplace_back(listed.substr(from, end - from));
    from = end + 1;
  }
  for (const fs::path& prefix : prefixes)
    for (auto it = fs::directory_iterator(prefix / "lib", ignored); !ignored && it != fs::directory_iterator();
         it.increment(ignored))
      if (it->path().filename().string().starts_with("python3"))
        for (const char* kind : {"site-packages", "dist-packages"}) out.push_back(it->path() / kind);
  return out;
}

}  // namespace

std::string setting(const char* name) {
  if (std::string_view(name).starts_with("RLX_")) return env_get(name).value_or("");
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::shared_ptr<const Library> Library::open(const std::string& path) {
  // Never destroyed: objects of plug-ins may be released at exit.
  static auto& known = *new std::map<std::string, std::shared_ptr<const Library>>;
  static auto& mutex = *new std::mutex;
  std::lock_guard lock(mutex);
  if (const auto it = known.find(path); it != known.end()) {
    if (it->second->forked()) it->second->throw_forked({});
    return it->second;
  }
  return known.emplace(path, load(path)).first->second;
}

Library::Library(std::string path, const abi::Api* api)
    : path_(std::move(path)), api_(api), functions_((api->struct_size - sizeof(abi::Api)) / sizeof(abi::Function)) {}

std::string Library::api_version() const {
  return concat_text(api_->pjrt_api_version.major_version, ".", api_->pjrt_api_version.minor_version);
}

abi::Function Library::function(std::size_t index) const {
  return index < functions_ ? reinterpret_cast<const abi::Function*>(api_ + 1)[index] : nullptr;
}

namespace {

std::string in_name_of(std::string_view who) { return who.empty() ? std::string() : concat_text(who, ": "); }

ErrorCode code_of(abi::Code code) {
  switch (code) {
    case abi::Code::InvalidArgument:
    case abi::Code::OutOfRange:
    case abi::Code::FailedPrecondition: return ErrorCode::InvalidArgument;
    case abi::Code::NotFound: return ErrorCode::NotFound;
    case abi::Code::ResourceExhausted: return ErrorCode::OutOfMemory;
    case abi::Code::Unimplemented: return ErrorCode::Unsupported;
    case abi::Code::Cancelled: return ErrorCode::Interrupted;
    case abi::Code::Unavailable:
    case abi::Code::DataLoss: return ErrorCode::DeviceLost;
    default: return ErrorCode::Internal;
  }
}

std::string hint_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::DeviceLost: return "make a new Session, which reopens the device";
    case ErrorCode::OutOfMemory: return "free what is not needed, or run it with smaller dimensions";
    case ErrorCode::Unsupported: return "use another plug-in, or another device for this program";
    default: return "set RLX_TPU_HLO_DUMP=DIR/ to write the programs of the plug-in, and report this with them";
  }
}

}  // namespace

Diagnostic Library::diagnostic(std::string_view who, std::string_view what, abi::Failure* failure) const {
  auto message = abi::arguments<abi::ErrorMessage>();
  auto code = abi::arguments<abi::ErrorGetCode>();
  message.error = code.error = failure;
  if (const abi::Function f = function(abi::Call<abi::ErrorMessage>::index))
    reinterpret_cast<void (*)(abi::ErrorMessage*)>(f)(&message);
  if (const abi::Function f = function(abi::Call<abi::ErrorGetCode>::index))
    drop(reinterpret_cast<abi::Failure* (*)(abi::ErrorGetCode*)>(f)(&code));
  std::string text(message.message ? std::string_view(message.message, message.message_size)
                                   : "the plug-in gives no reason");
  drop(failure);
  while (!text.empty() && (text.back() == '\n' || text.back() == '.')) text.pop_back();
  const ErrorCode ours = code_of(code.code);
  return {ours,
          concat_text(in_name_of(who), what, " of the plug-in ", path_, " failed (code ", static_cast<int>(code.code),
                      "): ", text),
          {},
          hint_of(ours)};
}

void Library::broke(std::string_view who, std::string_view what, std::string_view how) const {
  throw Error(ErrorCode::Internal,
              concat_text(in_name_of(who), what, " of the plug-in ", path_, " reported success, but ", how),
              "report it to the authors of the plug-in");
}

void Library::throw_missing(std::string_view who, std::string_view what) const {
  throw Error(ErrorCode::Unsupported,
              concat_text(in_name_of(who), "the plug-in ", path_, " (PJRT ", api_version(), ") has no function ", what),
              "use a newer plug-in");
}

void Library::throw_forked(std::string_view who) const {
  throw Error(ErrorCode::DeviceLost, concat_text(in_name_of(who), "the plug-in ", path_, " ", kForkedAway),
              std::string(kForkHint));
}

void Library::drop(abi::Failure* failure) const noexcept {
  const abi::Function f = function(abi::Call<abi::ErrorDestroy>::index);
  if (!failure || !f) return;
  auto a = abi::arguments<abi::ErrorDestroy>();
  a.error = failure;
  reinterpret_cast<void (*)(abi::ErrorDestroy*)>(f)(&a);
}

void Library::destroy(abi::Point* event) const noexcept {
  if (!event) return;
  auto a = abi::arguments<abi::EventDestroy>();
  a.event = event;
  give_back(a);
}

void Library::destroy(abi::Buffer* buffer) const noexcept {
  if (!buffer) return;
  auto a = abi::arguments<abi::BufferDestroy>();
  a.buffer = buffer;
  give_back(a);
}

std::string asked_plugin(const DeviceOptions& options) {
  if (const auto it = options.find("plugin"); it != options.end() && !it->second.empty()) return it->second;
  const std::string any = setting("RLX_TPU_PLUGIN");
  return any.empty() ? setting("LIBTPU_PATH") : any;
}

std::shared_ptr<const Library> find_library(const std::string& asked) {
  if (!asked.empty()) return Library::open(asked);
  std::string why;
  try {
    return Library::open("libtpu.so");
  } catch (const Error& e) {
    why = e.diagnostic().message;
  }
  std::error_code ignored;
  for (const fs::path& folder : package_folders())
    if (const fs::path path = folder / "libtpu" / "libtpu.so"; fs::exists(path, ignored)) return Library::open(path);
  throw Error(ErrorCode::DeviceUnavailable,
              concat_text("no PJRT plug-in was found: RLX_TPU_PLUGIN and LIBTPU_PATH are not set, no Python package "
                          "'libtpu' is installed, and ",
                          why),
              kWays);
}

}  // namespace rlx::tpu
