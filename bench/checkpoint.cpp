// Loading a bf16 checkpoint and prepacking its weights: rate and peak memory beside a plain copy of the mapped file,
// and the time of a second start with saved packed weights.
// usage: checkpoint [GB] [FOLDER]; writes a file of that size (2) to the folder (/tmp), and deletes it
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/before.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/formats/packed_weight_files.h"
#include "rlx/formats/safetensors.h"
#include "rlx/rlx.h"

namespace {

using namespace rlx;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kWidth = 2048, kInner = 8192;  // per layer: 4 x [width, width], 3 x [inner, width]
constexpr std::int64_t kLayerBytes = 2 * (4 * kWidth * kWidth + 3 * kWidth * kInner);

double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

double status_mb(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind(field, 0) == 0) return std::strtod(line.c_str() + std::strlen(field) + 1, nullptr) / 1024;
  return 0;
}

std::string weight(std::int64_t layer, const char* name) { return "layers." + std::to_string(layer) + "." + name; }

void write_checkpoint(const std::string& path, std::int64_t layers) {
  Tensor square = Tensor::zeros(Shape({kWidth, kWidth}, DType::BF16)),
         tall = Tensor::zeros(Shape({kInner, kWidth}, DType::BF16));
  for (Tensor* t : {&square, &tall}) {
    auto* p = reinterpret_cast<std::uint16_t*>(t->mutable_data());
    for (std::int64_t i = 0; i < t->num_elements(); ++i)
      p[i] = static_cast<std::uint16_t>(0x3c00 + i * 2654435761U % 512);
  }
  std::vector<NamedTensor> tensors;
  for (std::int64_t l = 0; l < layers; ++l) {
    for (const char* name : {"q", "k", "v", "o"}) tensors.push_back({weight(l, name), square});
    for (const char* name : {"gate", "up", "down_t"}) tensors.push_back({weight(l, name), tall});
  }
  write_safetensors(path, tensors, {});
}

// A program that reads every weight once: the matmuls of a decoder, without attention.
Graph program(std::int64_t layers) {
  Graph g("checkpoint");
  Expr x = g.input("x", Shape({1, kWidth}, DType::F32));
  const auto w = [&](std::int64_t l, const char* name, std::int64_t rows) {
    return g.transpose(g.cast(g.param(weight(l, name), Shape({rows, kWidth}, DType::BF16)), DType::F32), {1, 0});
  };
  for (std::int64_t l = 0; l < layers; ++l) {
    for (const char* name : {"q", "k", "v", "o"}) x = g.tanh(g.matmul(x, w(l, name, kWidth)));
    Expr gate = g.matmul(x, w(l, "gate", kInner)), up = g.matmul(x, w(l, "up", kInner)),
         down = g.matmul(x, w(l, "down_t", kInner));
    x = g.tanh(g.slice(g.silu(gate) * up + down, {0, 0}, {1, kWidth}));
  }
  g.set_outputs({x});
  return g;
}

int copy_part(const std::string& path) {
  MappedFile file = MappedFile::open(path);
  const auto t = Clock::now();
  void* to = ::mmap(nullptr, file.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (to == MAP_FAILED) return 1;
  std::memcpy(to, file.bytes().data(), file.size());
  const double s = seconds_since(t);
  std::printf("%.4f 0 0 0\n", s);
  return static_cast<const char*>(to)[file.size() / 2] == 77;  // uses the copy, so it is not optimized away
}

int load_part(const std::string& path, std::int64_t layers, const std::string& forms) {
  const auto start = Clock::now();
  CompileOptions options;
  if (!forms.empty()) options.packed_weight_cache = std::make_shared<PackedWeightFiles>(forms);
  CompiledGraph f = Session().compile_with(program(layers), options);
  const auto t = Clock::now();
  f.load_params(SafetensorsFile::open(path), LoadMode::Strict);
  const double load = seconds_since(t), all = seconds_since(start);
  std::printf("%.4f %.4f %.1f %.1f\n", load, all, status_mb("VmHWM:"),
              static_cast<double>(f.prepared_bytes()) / (1 << 20));
  return 0;
}

struct Measured {
  double seconds = 0, start = 0, peak_mb = 0, stays_mb = 0;
};

Measured run_part(const std::string& self, const std::string& arguments) {
  const std::string command = "'" + self + "' " + arguments;
  FILE* out = ::popen(command.c_str(), "r");
  Measured r;
  const bool read =
      out != nullptr && std::fscanf(out, "%lf %lf %lf %lf", &r.seconds, &r.start, &r.peak_mb, &r.stays_mb) == 4;
  if (out == nullptr || ::pclose(out) != 0 || !read) {
    std::fprintf(stderr, "checkpoint: %s failed\n", command.c_str());
    std::exit(1);
  }
  return r;
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

}  // namespace

int main(int argc, char** argv) try {
  compare_before_if_asked(argc, argv);
  if (argc >= 4 && std::string(argv[1]) == "--copy") return copy_part(argv[2]);
  if (argc >= 4 && std::string(argv[1]) == "--load")
    return load_part(argv[2], std::atoll(argv[3]), argc > 4 ? argv[4] : "");
  const double gb = argc > 1 ? std::atof(argv[1]) : 2.0;
  const std::string folder = argc > 2 ? argv[2] : "/tmp", path = folder + "/rlx-checkpoint.safetensors",
                    forms = folder + "/rlx-checkpoint-forms";
  const std::int64_t layers = std::max<std::int64_t>(1, static_cast<std::int64_t>(gb * 1e9) / kLayerBytes);
  write_checkpoint(path, layers);
  std::filesystem::remove_all(forms);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string n = std::to_string(layers);
  std::vector<double> copies, loads, ratios;
  Measured load;
  for (int round = 0; round < 5; ++round) {  // the first round reads the file into the page cache
    const double copy = run_part(self, "--copy '" + path + "' 0").seconds;
    load = run_part(self, "--load '" + path + "' " + n);
    if (round == 0) continue;
    copies.push_back(copy), loads.push_back(load.seconds), ratios.push_back(copy / load.seconds);
  }
  const double size = static_cast<double>(std::filesystem::file_size(path)) / 1e9;
  std::printf("checkpoint %.2f GB in bf16, %lld tensors\n", size, static_cast<long long>(layers * 7));
  std::printf("copy of the mapped file   %.2f s, %.2f GB/s\n", median(copies), size / median(copies));
  std::printf("load to packed layouts    %.2f s, %.2f GB/s, %.2f of the copy's rate (goal 0.7)\n", median(loads),
              size / median(loads), median(ratios));
  std::printf("peak of memory            %.0f MB, %.3f of the %.0f MB that stay (goal 1.15)\n", load.peak_mb,
              load.peak_mb / load.stays_mb, load.stays_mb);
  const Measured saving = run_part(self, "--load '" + path + "' " + n + " '" + forms + "'");
  std::vector<double> starts;
  for (int round = 0; round < 5; ++round)
    starts.push_back(run_part(self, "--load '" + path + "' " + n + " '" + forms + "'").start);
  std::printf("first start, saving forms %.2f s; later ones, compile and load: %.1f ms (goal 50)\n", saving.start,
              1e3 * median(starts));
  std::filesystem::remove_all(forms);
  std::filesystem::remove(path);
  return 0;
} catch (const rlx::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
