// Safetensors files: writing one, listing it, and loading all or some of its tensors, in f32, bf16 and f16.
#include <rlx/formats/safetensors.h>
#include <rlx/rlx.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace {

// y = x w + b
rlx::Graph dense() {
  rlx::Graph g("dense");
  auto x = g.input("x", {{1, 2}, rlx::DType::F32});
  auto w = g.param("layer.weight", {{2, 3}, rlx::DType::F32});
  auto b = g.param("layer.bias", {{3}, rlx::DType::F32});
  g.set_outputs({g.matmul(x, w) + b});
  return g;
}

void show(const char* what, const std::vector<float>& y) { std::printf("%s: %g %g %g\n", what, y[0], y[1], y[2]); }

}  // namespace

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "rlx_example_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  const std::string path = folder + "/model.safetensors";

  // Writing: named tensors of any dtype, which the file keeps.
  const rlx::Tensor w = rlx::Tensor::of<float>({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  const rlx::Tensor b = rlx::Tensor::of<float>({3}, std::vector<float>{0.5f, 0.5f, 1.0f / 3});
  const std::vector<rlx::NamedTensor> tensors{
      {"layer.weight", w.cast(rlx::DType::BF16)}, {"layer.bias", b.cast(rlx::DType::F16)}, {"head.weight", w}};
  rlx::write_safetensors(path, tensors, {{"format", "pt"}});

  // Reading: the file is mapped and checked, and nothing is copied.
  auto file = rlx::SafetensorsFile::open(path);
  for (const std::string& name : file->names()) {
    const rlx::Tensor t = rlx::SafetensorsFile::tensor(file, name);  // keeps the file open
    std::printf("%-14s %s\n", name.c_str(), t.shape().text().c_str());
  }

  // Loading: strict needs exactly the params of the graph; a subset may leave tensors of the file unused.
  auto f = rlx::Session().compile(dense());
  try {
    f.load_params(file);
  } catch (const rlx::Error& e) {
    std::printf("strict: %s\n", e.diagnostic().message.c_str());
  }
  std::printf("subset: %zu params\n", f.load_params(file, rlx::LoadMode::Subset));
  show("f32 from bf16 and f16", f.run({{"x", {1, 1}}})[0]);

  // One tensor at a time, for other names or layouts.
  auto h = rlx::Session().compile(dense());
  h.set_param("layer.weight", rlx::SafetensorsFile::tensor(file, "head.weight"));
  h.set_param("layer.bias", b);
  show("set one by one", h.run({{"x", {1, 1}}})[0]);

  std::filesystem::remove_all(folder);
}
