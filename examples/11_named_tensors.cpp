// Named tensors: inputs and outputs of any dtype, on a device and by the reference rules, and npz files.
#include <rlx/formats/npy.h>
#include <rlx/rlx.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace {

// The rows of a table at ids, and their mean: ids [n] i32 -> [n, 2] f16, [2] f16.
rlx::Graph lookup() {
  rlx::Graph g("lookup");
  auto ids = g.input("ids", {{rlx::Dim::symbol("n")}, rlx::DType::I32});
  auto rows = g.gather(g.param("table", {{4, 2}, rlx::DType::F16}), ids);
  g.set_outputs({rows, g.mean(rows, {0})});
  return g;
}

}  // namespace

int main() {
  const rlx::Tensor table =
      rlx::Tensor::of<float>({4, 2}, std::vector<float>{0, 0.5f, 1, 1.5f, 2, 2.5f, 3, 3.5f}).cast(rlx::DType::F16);
  const rlx::Tensor ids = rlx::Tensor::of<std::int32_t>({3}, std::vector<std::int32_t>{3, 0, 3});

  auto f = rlx::Session().compile(lookup());
  for (const rlx::IoInfo& io : f.inputs()) std::printf("input %s: %s\n", io.name.c_str(), io.shape.text().c_str());
  for (const rlx::IoInfo& io : f.outputs()) std::printf("output %s: %s\n", io.name.c_str(), io.shape.text().c_str());

  // Inputs are a map from names to tensors. Outputs come in the order of their declaration, in the dtypes of the graph.
  f.set_param("table", table);
  const std::vector<rlx::Tensor> y = f.run_typed({{"ids", ids}});
  std::printf("rows %s, mean %g %g\n", y[0].shape().text().c_str(), y[1].at(0), y[1].at(1));

  // evaluate takes the same names; it runs the reference rules, op by op.
  const std::vector<rlx::Tensor> expected = rlx::evaluate(lookup(), {{"ids", ids}, {"table", table}});
  std::printf("as the reference rules: %s\n", y[0].at(0) == expected[0].at(0) ? "yes" : "no");

  // The error of a wrong name lists the right ones.
  try {
    f.run_typed({{"idz", ids}});
  } catch (const rlx::Error& e) {
    std::printf("%s\n", e.what());
  }

  // Files of named tensors, as numpy.savez writes and numpy.load reads them.
  std::string folder = (std::filesystem::temp_directory_path() / "rlx_example_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  rlx::write_npz(folder + "/results.npz", std::vector<rlx::NamedTensor>{{"rows", y[0]}, {"mean", y[1]}});
  for (const rlx::NamedTensor& t : rlx::read_npz(folder + "/results.npz"))
    std::printf("results.npz: %s %s\n", t.name.c_str(), t.tensor.shape().text().c_str());
  std::filesystem::remove_all(folder);
}
