// GGUF files: writing one with quantized weights, listing it, and a matmul that reads its blocks.
#include <rlx/formats/gguf.h>
#include <rlx/formats/gguf_writer.h>
#include <rlx/rlx.h>
#include <rlx/tensor/block_search.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "rlx_example_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  const std::string path = folder + "/model.gguf";

  // Q4_0: blocks of 32 weights in 18 bytes, with a search for the scale of least error.
  const std::vector<std::int64_t> dims{4, 64};
  std::vector<float> weights(4 * 64);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i * 37 % 101) / 101 - 0.5f;
  std::vector<std::byte> blocks(rlx::gguf_size_bytes(rlx::GgufType::Q4_0, dims));
  rlx::search_blocks(rlx::QuantScheme::Q4_0, weights, {}, blocks);

  // Writing: metadata and tensors are declared first, then their bytes are written. commit puts the whole file in
  // place.
  rlx::GgufWriter out(path);
  out.set_string("general.architecture", "example");
  out.set_int("example.block_count", rlx::GgufKind::U32, 1);
  out.set_strings("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"});
  out.add_tensor("blk.0.ffn_up.weight", rlx::GgufType::Q4_0, dims);
  out.begin();
  out.write(blocks);
  out.commit();

  // Reading: the file is mapped and checked, and nothing is copied.
  auto file = rlx::GgufFile::open(path);
  std::printf("%s, %d layer, %zu tokens\n", std::string(file->architecture()).c_str(),
              static_cast<int>(file->get_int("example.block_count")), file->value("tokenizer.ggml.tokens").size());
  for (const rlx::GgufTensor& t : file->tensors())
    std::printf("%s: %s, %d x %d in %zu bytes\n", std::string(t.name).c_str(), t.info().name.data(),
                static_cast<int>(t.dims[0]), static_cast<int>(t.dims[1]), t.bytes.size());

  // As a weight: the quantized values are a param, and the matmul dequantizes them as it reads them.
  rlx::Graph g("layer");
  auto x = g.input("x", {{1, 64}, rlx::DType::F32});
  auto codes = g.param("blk.0.ffn_up.weight", {{4, 36}, rlx::DType::U8});
  g.set_outputs({g.dequant_matmul(x, codes, rlx::QuantScheme::Q4_0)});
  auto f = rlx::Session().compile(std::move(g));
  f.load_params(file);
  const auto y = f.run({{"x", std::vector<float>(64, 1)}});
  std::printf("%.2f %.2f %.2f %.2f\n", y[0][0], y[0][1], y[0][2], y[0][3]);
  std::filesystem::remove_all(folder);
}
