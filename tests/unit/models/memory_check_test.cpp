// The memory check of a model: the estimate before loading against the memory after it, and the memory that a system
// reports.
#include "rlx/models/memory_check.h"

#include <doctest/doctest.h>

#include <cstdio>

#include "rlx/formats/gguf.h"
#include "tests/support/decoder_gguf.h"
#include "tests/support/decoder_reference.h"
#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

std::string refusal(const std::string& path, DecoderOptions o, std::size_t limit) {
  o.memory_limit = limit;
  return error_text([&] { (void)DecoderModel::load(path, o); });
}

}  // namespace

TEST_CASE("memory check: a limit refuses a model before it is loaded, and names the parts") {
  const test::TempDir folder;
  test::write_model(folder, test::decoder_reference("llama2"));
  DecoderOptions o;
  o.context = 4096, o.max_tokens = 8;
  const DecoderModel m = DecoderModel::load(folder.path(), o);
  const std::size_t cache = m.cache_bytes();
  DecoderGraphOptions graph;
  graph.context = graph.page = 4096, graph.max_tokens = 8;
  const MemoryNeed need = program_memory(m.program().compile_result().lir, m.config(), graph);
  CHECK(need.cache == cache);
  CHECK(need.buffers > 96 * 4);
  // The packed bytes equal those of the program, except for vectors, which are in memory too.
  CHECK(need.repacked > 0);
  CHECK(m.program().prepared_bytes() >= need.repacked);
  CHECK(m.program().prepared_bytes() <= need.repacked + need.in_files);
  CHECK(need.in_files + need.repacked < 330'000);
  CHECK(need.in_files < 96 * 48 * 4);  // rows of the embedding are read from the file
  CHECK(refusal(folder.path(), o, need.total()).empty());
  const std::string late = refusal(folder.path(), o, need.total() - 1);
  CHECK(contains(late, "out of memory"));
  CHECK(contains(late, folder.path()));
  for (const char* part : {"weights", "packed for matmuls", "keys and values of 4096 tokens", "values of a run",
                           "a smaller context", "quantized to fewer bits", "MB"})
    CHECK_MESSAGE(contains(late, part), late);
  const std::string early = refusal(folder.path(), o, 1000);
  CHECK(contains(early, "keys and values of 4096 tokens"));
  CHECK_FALSE(contains(early, "values of a run up to"));  // refused before the compile
  o.check_memory = false;
  CHECK(refusal(folder.path(), o, 1000).empty());
}

TEST_CASE("memory check: the heads of files say what weights take") {
  const test::DecoderReference reference = test::decoder_reference("llama2");
  const test::TempDir folder;
  test::write_model(folder, reference);
  std::size_t bytes = 0;
  for (const NamedTensor& w : reference.weights) bytes += w.tensor.size_bytes();
  DecoderOptions o;
  o.context = 64;
  // A quantized GGUF file needs less, and so do int8 matmuls.
  const std::string gguf = folder.write("m.gguf", test::with_blocks(test::decoder_gguf(reference), QuantScheme::Q8_0));
  const std::size_t cache = DecoderModel::load(folder.path(), o).cache_bytes();
  const std::size_t embedding = std::size_t{96} * 48 * 4;
  const auto megabytes = [](std::size_t n) {
    char text[32];
    std::snprintf(text, sizeof text, "weights %.1f MB, keys", static_cast<double>(n) / 1e6);
    return std::string(text);
  };
  const std::string whole = refusal(folder.path(), o, bytes - embedding + cache - 1);
  CHECK_MESSAGE(contains(whole, megabytes(bytes - embedding)), whole);
  CHECK_FALSE(contains(refusal(folder.path(), o, bytes - embedding + cache), "keys and values of 64 tokens 0.1 MB\n"));
  const std::string blocks = refusal(gguf, o, 100);
  std::size_t in_blocks = 0;
  const auto file = GgufFile::open(gguf);
  for (const std::string& name : file->names())
    if (name != "token_embd.weight") in_blocks += file->find(name)->size_bytes;
  CHECK(in_blocks < bytes - embedding);
  CHECK_MESSAGE(contains(blocks, megabytes(in_blocks)), blocks);
  o.matmul_precision = MatmulPrecision::Int8;
  const std::string least = refusal(folder.path(), o, bytes / 8);
  CHECK_MESSAGE(contains(least, megabytes((bytes - embedding) / 4)), least);
}

TEST_CASE("memory check: a q8_0 cache is named where heads fit its blocks") {
  DecoderConfig c;
  c.family = "test", c.vocab_size = 10, c.hidden_size = 8, c.ff_size = 8, c.num_heads = 2, c.kv_heads = 2;
  c.head_dim = 32, c.max_positions = 100, c.layers.assign(2, {.rope = -1});
  DecoderGraphOptions g;
  g.context = 1000, g.page = 1000, g.pages = 2000, g.pages_per_sequence = 1, g.sequences = 2;
  MemoryNeed need;
  need.in_files = 3'000'000'000, need.repacked = 500'000'000, need.cache = decoder_cache_bytes(c, g);
  CHECK(need.cache == std::size_t{2} * 2 * 2'000'000 * 64 * 4);
  need.buffers = 120'000'000;
  CHECK(error_text([&] { require_memory("m", need, need.total(), c, g); }).empty());
  const std::string text = error_text([&] { require_memory("m", need, 2'500'000'000, c, g); });
  CHECK(contains(text, "loading 'm' needs 5.67 GB of memory, but 2.50 GB are available"));
  CHECK(contains(text,
                 "weights 3.50 GB (0.50 GB of them packed for matmuls), keys and values of 2000000 tokens "
                 "2.05 GB, intermediate values of a run up to 0.12 GB"));
  CHECK(contains(text, "1024 tokens take 1.0 MB"));
  CHECK(contains(text, "a KV cache in q8_0 (0.54 GB)"));
  c.head_dim = 24;
  CHECK_FALSE(contains(error_text([&] { require_memory("m", need, 1, c, g); }), "q8_0"));
}

TEST_CASE("available memory: of a device what its backend tells") {
  struct ToldDevice final : OpenDevice {
    DeviceMemory told{};
    DeviceId id() const override { return {}; }
    MemoryModel memory_model() const override { return MemoryModel::Arena; }
    DeviceMemory memory() const override { return told; }
    std::shared_ptr<Stream> stream(std::uintptr_t) override { return nullptr; }
    void drain() override {}
  };
  ToldDevice device;
  CHECK_FALSE(available_memory(device).has_value());
  device.told.total = 1000;
  device.told.in_use[0] = 300;
  CHECK(available_memory(device) == 700U);
  device.told.in_use[1] = 900;
  CHECK(available_memory(device) == 0U);
}

TEST_CASE("available memory: the least of what the system and its control groups leave") {
  const test::TempDir root;
  CHECK_FALSE(available_memory(root.path()).has_value());
  root.write("proc/meminfo", "MemTotal:       16000 kB\nMemFree: 100 kB\nMemAvailable:   9000 kB\n");
  CHECK(available_memory(root.path()) == 9000U * 1024);
  root.write("proc/self/cgroup", "12:cpu:/x\n0::/a/b\n");
  root.write("sys/fs/cgroup/a/b/memory.max", "max\n");
  root.write("sys/fs/cgroup/a/b/memory.current", "1000\n");
  CHECK(available_memory(root.path()) == 9000U * 1024);
  root.write("sys/fs/cgroup/a/memory.max", "8000000\n");
  root.write("sys/fs/cgroup/a/memory.current", "3000000\n");
  CHECK(available_memory(root.path()) == 5000000U);
  root.write("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 400000\nactive_file 100000\n");
  CHECK(available_memory(root.path()) == 5500000U);
  root.write("sys/fs/cgroup/a/b/memory.max", "2000\n");
  CHECK(available_memory(root.path()) == 1000U);
  root.write("sys/fs/cgroup/a/b/memory.current", "3000\n");
  CHECK(available_memory(root.path()) == 0U);
  const test::TempDir old;
  old.write("proc/meminfo", "MemAvailable: 9000 kB\n");
  old.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  old.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n");
  CHECK(available_memory(old.path()) == 9000U * 1024);
  old.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "100000\n");
  old.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "50000\n");
  old.write("sys/fs/cgroup/memory/memory.stat", "total_inactive_file 20000\ntotal_active_file 0\n");
  CHECK(available_memory(old.path()) == 70000U);
#if defined(__linux__)
  const auto here = available_memory();
  REQUIRE(here);
  CHECK(*here > 1'000'000);
  CHECK(available_memory(*Session().open_device()) > 1'000'000U);
#endif
}

}  // namespace rlx
