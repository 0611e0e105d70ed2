// Estimates a model's memory, and reads the system's available memory from /proc and the control groups (cgroups).
#include "rlx/models/memory_check.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string_view>
#include <vector>

#include "rlx/error.h"
#include "rlx/ir/packed_layout.h"

namespace rlx {
namespace {

// The text of a file of /proc or /sys, which has no size of its own; empty when it cannot be read.
std::string read_system_file(const std::string& path) {
  std::string text;
  std::FILE* f = std::fopen(path.c_str(), "r");
  if (f == nullptr) return text;
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, f)) > 0;) text.append(buffer, n);
  std::fclose(f);
  return text;
}

// The number after `key` at the beginning of a line; without a key, the number at the beginning of the text.
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view key = {}) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.starts_with(key)) continue;
    const std::size_t digit = line.find_first_not_of(" \t", key.size());
    if (digit == std::string_view::npos) return std::nullopt;
    std::uint64_t value = 0;
    const auto read = std::from_chars(line.data() + digit, line.data() + line.size(), value);
    if (read.ec != std::errc()) return std::nullopt;
    return value;
  }
  return std::nullopt;
}

// The free memory below the limit of one control group; none without a limit. The page cache of files counts as free,
// because the kernel reclaims it first; `inactive` and `active` are its keys in memory.stat.
std::optional<std::uint64_t> free_below_limit(const std::string& folder, const char* limit_file, const char* usage_file,
                                              std::string_view inactive, std::string_view active) {
  const auto limit = number_after(read_system_file(folder + limit_file)),
             used = number_after(read_system_file(folder + usage_file));
  // A group without a limit has the word "max" in version 2, and a number near 2^63 in version 1.
  if (!limit || !used || *limit >= std::uint64_t{1} << 60) return std::nullopt;
  const std::string stat = read_system_file(folder + "/memory.stat");
  const std::uint64_t page_cache = number_after(stat, inactive).value_or(0) + number_after(stat, active).value_or(0);
  const std::uint64_t unreclaimable = *used - std::min(*used, page_cache);
  return *limit - std::min(*limit, unreclaimable);
}

std::string size_text(std::size_t bytes) {
  char text[32];
  const double v = static_cast<double>(bytes);
  std::snprintf(text, sizeof text, v < 1e8 ? "%.1f MB" : "%.2f GB", v < 1e8 ? v / 1e6 : v / 1e9);
  return text;
}

// By Param: true when runs read only rows of it (gather), as of an embedding table. It need not stay in memory.
std::vector<bool> only_gathered(const Graph& g) {
  const std::vector<NodeId> params = g.leaves(OpKind::Param);
  constexpr std::size_t kNone = ~std::size_t{0};
  std::vector<std::size_t> index(g.num_nodes(), kNone);
  for (std::size_t i = 0; i < params.size(); ++i) index[params[i].index] = i;
  std::vector<bool> gathered(params.size(), true);
  const auto read = [&](Value v) {
    if (const std::size_t param = index[v.node.index]; param != kNone) gathered[param] = false;
  };
  for (std::uint32_t n = 0; n < g.num_nodes(); ++n) {
    const Node& node = g.node(NodeId{n});
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.kind() != OpKind::Gather || i != 0) read(node.inputs[i]);
  }
  for (const Value v : g.outputs()) read(v);
  return gathered;
}

}  // namespace

MemoryNeed least_memory(const DecoderConfig& config, const ModelWeights& weights, const DecoderGraphOptions& graph,
                        MatmulPrecision precision) {
  if (!weights.loader)
    throw Error(ErrorCode::InvalidArgument, "least_memory: the weights have no loader (a null pointer)");
  MemoryNeed need;
  const std::string embedding = config.names.embedding + ".weight";
  for (const std::string& name : weights.loader->names()) {
    const auto view = weights.loader->find(name);
    // Of an embedding that is not the output layer too, only some rows are read. Checkpoints of the base model alone
    // have names without the prefix.
    if (!view || (!config.tied && embedding.ends_with(name))) continue;
    std::size_t bytes = view->size_bytes;
    if (precision != MatmulPrecision::Exact && is_float(view->dtype)) {
      const std::size_t least = precision == MatmulPrecision::Int8 ? 1 : 2;
      bytes = bytes / size_bytes(view->dtype) * std::min(least, size_bytes(view->dtype));
    }
    need.in_files += bytes;
  }
  need.cache = decoder_cache_bytes(config, graph);
  return need;
}

MemoryNeed program_memory(const LirModule& program, const DecoderConfig& config, const DecoderGraphOptions& graph) {
  MemoryNeed need;
  const Graph& g = program.prepare;
  const std::vector<bool> gathered = only_gathered(program.graph);
  for (std::size_t i = 0; i < g.outputs().size(); ++i) {
    const Value v = g.outputs()[i];
    if (g.node(v.node).kind() != OpKind::Param)
      need.repacked += stored_bytes(g, v);
    else if (i >= gathered.size() || !gathered[i])
      need.in_files += stored_bytes(g, v);
  }
  need.cache = decoder_cache_bytes(config, graph);
  // The intermediate values, and one row of logits for each sequence.
  need.buffers = program.plan.arena_bytes + static_cast<std::size_t>(graph.sequences) *
                                                static_cast<std::size_t>(config.vocab_size) * sizeof(float);
  return need;
}

std::optional<std::size_t> available_memory(const std::string& root) {
  std::optional<std::uint64_t> least;
  const auto lower_to = [&](std::optional<std::uint64_t> bytes) {
    if (bytes) least = std::min(least.value_or(*bytes), *bytes);
  };
  if (const auto kib = number_after(read_system_file(root + "/proc/meminfo"), "MemAvailable:")) lower_to(*kib * 1024);
  // cgroup version 2, whose line in /proc/self/cgroup is "0::/path": our group and every group above it.
  const std::string groups = read_system_file(root + "/proc/self/cgroup");
  std::string path;
  if (const std::size_t at = groups.find("0::/"); at != std::string::npos)
    path = groups.substr(at + 3, groups.find('\n', at) - at - 3);
  if (!path.starts_with('/')) path.clear();
  while (true) {
    lower_to(free_below_limit(root + "/sys/fs/cgroup" + path, "/memory.max", "/memory.current", "inactive_file ",
                              "active_file "));
    if (path.empty()) break;
    path.resize(path.rfind('/'));
  }
  // cgroup version 1.
  lower_to(free_below_limit(root + "/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                            "total_inactive_file ", "total_active_file "));
  if (!least) return std::nullopt;
  return static_cast<std::size_t>(std::min<std::uint64_t>(*least, std::numeric_limits<std::size_t>::max()));
}

std::optional<std::size_t> available_memory(const OpenDevice& device) {
  if (device.memory_model() == MemoryModel::Host) return available_memory();
  const DeviceMemory memory = device.memory();
  if (memory.total == 0) return std::nullopt;
  return memory.total - std::min(memory.total, memory.used());
}

void require_memory(const std::string& path, const MemoryNeed& need, std::size_t available, const DecoderConfig& config,
                    const DecoderGraphOptions& graph) {
  if (need.total() <= available) return;
  std::string parts = concat_text("weights ", size_text(need.in_files + need.repacked));
  if (need.repacked != 0) parts += concat_text(" (", size_text(need.repacked), " of them packed for matmuls)");
  parts += concat_text(", keys and values of ", graph.pages * graph.page, " tokens ", size_text(need.cache));
  if (need.buffers != 0) parts += concat_text(", intermediate values of a run up to ", size_text(need.buffers));
  // The layers whose cache grows with the context: not those with a sliding window and a page pool of their own.
  const auto tokens = static_cast<std::size_t>(std::max<std::int64_t>(graph.pages * graph.page, 1));
  DecoderConfig growing_layers = config;
  if (graph.window_page != 0) std::erase_if(growing_layers.layers, [](const DecoderLayer& l) { return l.window != 0; });
  const std::size_t growing = growing_layers.layers.empty() ? 0 : decoder_cache_bytes(growing_layers, graph);
  std::string hint;
  if (growing != 0)
    hint = concat_text("a smaller context (1024 tokens take ", size_text(growing / tokens * 1024), "), ");
  DecoderGraphOptions quantized_cache = graph;
  quantized_cache.cache_scheme = QuantScheme::Q8_0;
  if (config.cached_dim() % 32 == 0)
    if (const std::size_t q8 = decoder_cache_bytes(config, quantized_cache); q8 < need.cache)
      hint += concat_text("a KV cache in q8_0 (", size_text(q8), "), ");
  hint += "weights quantized to fewer bits; or load without this check";
  throw Error(Diagnostic{ErrorCode::OutOfMemory,
                         concat_text("loading '", path, "' needs ", size_text(need.total()), " of memory, but ",
                                     size_text(available), " are available"),
                         std::move(parts), std::move(hint)});
}

}  // namespace rlx
