// Compiles programs, caches them and dumps their texts.
#include "rlx/backends/tpu/program.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <set>
#include <span>

#include "rlx/backends/tpu/cache.h"
#include "rlx/base/output_file.h"
#include "rlx/base/trace.h"
#include "rlx/device/device.h"

namespace rlx::tpu {
namespace {

/// A protocol buffer field of less than 128 bytes.
std::string field(char tag, std::string_view body) { return concat_text(tag, static_cast<char>(body.size()), body); }

// CompileOptionsProto for one device: the minimum that plug-ins accept for the first device, with the device's id for
// others.
std::string options_for(const Client& client, std::size_t ordinal, const std::string& who) {
  const std::string least(abi::kCompileOptions, sizeof abi::kCompileOptions);
  if (ordinal == 0) return least + strict_options(client.is_cpu());
  auto description = abi::arguments<abi::DeviceGetDescription>();
  description.device = client.devices()[ordinal];
  client.library().call(who, description);
  auto id = abi::arguments<abi::DeviceDescriptionId>();
  id.device_description = description.device_description;
  client.library().call(who, id);
  check(id.id >= 0, "a device of the plug-in has a negative id");
  std::string number;  // as a protocol buffer varint
  for (auto left = static_cast<unsigned>(id.id); number.empty() || left != 0; left >>= 7)
    number += static_cast<char>((left & 0x7f) | (left >> 7 ? 0x80 : 0));
  // executable_build_options: num_replicas 1, num_partitions 1, device_assignment {1 replica, 1 computation: the id}
  const std::string devices = std::string("\x08\x01\x10\x01", 4) + field('\x1a', field('\x0a', number));
  return field('\x1a', least.substr(2) + field('\x4a', devices)) + strict_options(client.is_cpu());
}

void write_text(const std::string& place, std::string_view text, const std::string& graph) {
  static std::mutex mutex;
  static std::set<std::string> begun;  // files that this process has written
  static int count = 0;
  std::lock_guard lock(mutex);
  std::string path = place;
  if (place.back() == '/') {
    std::string name = graph;
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c) && c != '-' && c != '_'; }, '_');
    char number[16];
    std::snprintf(number, sizeof number, "%04d-", ++count);
    std::error_code ignored;
    std::filesystem::create_directories(place, ignored);
    path = concat_text(place, number, name, ".mlir");
  }
  const std::string all = concat_text("// ", graph, "\n", text, "\n");
  const std::string_view part = all;
  try {
    if (begun.contains(path))
      append_to_file(path, all);
    else
      replace_file(path, std::span(&part, 1));
  } catch (const Error& e) {
    throw Error(e.code(), concat_text("RLX_TPU_HLO_DUMP: ", e.diagnostic().message),
                "set it to a file that can be written, or to such a folder with a / at its end");
  }
  begun.insert(path);
}

// The line of the text that a plug-in's message names ("-:12:3: ..."), for error messages.
std::string line_named(std::string_view message, std::string_view text) {
  const std::size_t at = message.find("-:");
  std::size_t number = 0;
  if (at == std::string_view::npos ||
      std::from_chars(message.data() + at + 2, message.data() + message.size(), number).ec != std::errc() ||
      number == 0)
    return {};
  for (; number > 1 && !text.empty(); --number) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  std::string_view line = text.substr(0, text.find('\n'));
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  constexpr std::size_t kMost = 300;
  return line.size() > kMost ? concat_text(line.substr(0, kMost), "...") : std::string(line);
}

// An entry of CompileOptionsProto's map env_option_overrides, name to a value: {bool_field}, {string_field}.
std::string with_option(std::string_view name, std::string_view value) {
  return field('\x3a', field('\x0a', name) + field('\x12', value));
}
constexpr std::string_view kFusions = "xla_cpu_experimental_ynn_fusion_type";
std::string without_fusions() { return with_option(kFusions, field('\x0a', "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT")); }

}  // namespace

std::string strict_options(bool cpu) {
  const std::string off("\x10\x00", 2), precision = with_option("xla_allow_excess_precision", off);
  return cpu ? precision + with_option("xla_cpu_enable_fast_min_max", off) + without_fusions() : precision;
}

CompileSettings compile_settings(const DeviceOptions& options) {
  CompileSettings out;
  const auto cache = options.find("cache");
  out.cache = cache != options.end() ? cache->second : setting("RLX_TPU_CACHE");
  if (out.cache == "off") out.cache.clear();
  out.dump = setting("RLX_TPU_HLO_DUMP");
  return out;
}

Program::Program(std::shared_ptr<const Client> client, int ordinal, std::string_view text, const std::string& graph,
                 const CompileSettings& settings)
    : client_(std::move(client)), graph_(graph) {
  const std::string who = concat_text("device ", device_text({Device::Tpu, ordinal}));
  if (!settings.dump.empty()) write_text(settings.dump, text, graph);
  const std::string options = options_for(*client_, static_cast<std::size_t>(ordinal), who);
  if (settings.cache.empty()) {
    compile(text, options, who);
    return;
  }
  const Fingerprint key = cache_key(*client_, text, options);
  if (const auto bytes = read_cached(settings.cache, key); bytes && load(*bytes, who)) return;
  compile(text, options, who);
  keep(settings.cache, key, who);
}

Program::~Program() {
  auto a = abi::arguments<abi::LoadedExecutableDestroy>();
  a.executable = handle_;
  if (handle_) client_->library().give_back(a);
}

// If a plug-in rejects its own serialized program (another build with the same name), the program is compiled again.
bool Program::load(const std::string& bytes, const std::string& who) {
  if (!client_->library().has<abi::ExecutableDeserializeAndLoad>()) return false;
  const TraceSpan span("compile", "load", graph_);
  auto a = abi::arguments<abi::ExecutableDeserializeAndLoad>();
  a.client = client_->handle();
  a.serialized_executable = bytes.data();
  a.serialized_executable_size = bytes.size();
  if (abi::Failure* failure = client_->library().attempt(who, a)) {
    client_->library().drop(failure);
    return false;
  }
  handle_ = a.loaded_executable;
  return handle_ != nullptr;
}

void Program::compile(std::string_view text, std::string_view options, const std::string& who) {
  const Library& library = client_->library();
  const TraceSpan span("compile", "xla", graph_);
  static constexpr std::string_view kFormat = "mlir";
  abi::Program program{};
  program.struct_size = sizeof program;
  program.code = const_cast<char*>(text.data());  // not written
  program.code_size = text.size();
  program.format = kFormat.data();
  program.format_size = kFormat.size();
  auto a = abi::arguments<abi::ClientCompile>();
  a.client = client_->handle();
  a.program = &program;
  a.compile_options = options.data();
  a.compile_options_size = options.size();
  if (abi::Failure* failure = library.attempt(who, a)) {
    Diagnostic d = library.diagnostic(who, "PJRT_Client_Compile", failure);
    const std::string newest = without_fusions();  // older plug-ins lack that option
    if (options.ends_with(newest) && d.message.find(kFusions) != std::string::npos)
      return compile(text, options.substr(0, options.size() - newest.size()), who);
    const std::string line = line_named(d.message, text);
    d.where = line.empty() ? concat_text("graph '", graph_, "'") : concat_text("graph '", graph_, "', at ", line);
    if (d.code == ErrorCode::InvalidArgument) d.code = ErrorCode::Unsupported;
    if (d.code == ErrorCode::DeviceLost) client_->lose();
    throw Error(std::move(d));
  }
  handle_ = a.executable;
  if (!handle_) library.broke(who, "PJRT_Client_Compile", "returned no executable");
}

namespace {

// The executable of a loaded executable; the destructor releases it.
class Code {
 public:
  Code(const Library& library, abi::LoadedExecutable* loaded) : library_(library) {
    if (!library.has<abi::LoadedExecutableGetExecutable>() || !library.has<abi::ExecutableDestroy>()) return;
    auto a = abi::arguments<abi::LoadedExecutableGetExecutable>();
    a.loaded_executable = loaded;
    library.drop(library.attempt({}, a));
    handle_ = a.executable;
  }
  ~Code() {
    auto a = abi::arguments<abi::ExecutableDestroy>();
    a.executable = handle_;
    if (handle_) library_.give_back(a);
  }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  abi::Executable* handle() const { return handle_; }

 private:
  const Library& library_;
  abi::Executable* handle_ = nullptr;
};

}  // namespace

// Programs that cannot be serialized are compiled at each start.
void Program::keep(const std::string& folder, const Fingerprint& key, const std::string& who) const {
  const Library& library = client_->library();
  const Code code(library, handle_);
  if (!code.handle() || !library.has<abi::ExecutableSerialize>()) return;
  auto a = abi::arguments<abi::ExecutableSerialize>();
  a.executable = code.handle();
  if (abi::Failure* failure = library.attempt(who, a)) return library.drop(failure);
  if (a.serialized_bytes) write_cached(folder, key, {a.serialized_bytes, a.serialized_bytes_size}, who);
  if (a.serialized_executable && a.serialized_executable_deleter)
    a.serialized_executable_deleter(a.serialized_executable);
}

std::size_t Program::run_bytes() const {
  const Library& library = client_->library();
  const Code code(library, handle_);
  if (!code.handle() || !library.has<abi::ExecutableGetCompiledMemoryStats>()) return 0;
  auto a = abi::arguments<abi::ExecutableGetCompiledMemoryStats>();
  a.executable = code.handle();
  if (abi::Failure* failure = library.attempt({}, a)) return library.drop(failure), 0;
  return static_cast<std::size_t>(std::max<std::int64_t>(0, a.output_size_in_bytes + a.temp_size_in_bytes));
}

}  // namespace rlx::tpu
