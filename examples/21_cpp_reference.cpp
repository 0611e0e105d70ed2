// The examples of docs/cpp_reference.md, one function for each group of that page.
#include <rlx/backends/cpu/custom_kernel.h>
#include <rlx/formats/npy.h>
#include <rlx/formats/safetensors.h>
#include <rlx/generation/language_model.h>
#include <rlx/models/flow.h>
#include <rlx/models/sentence_encoder.h>
#include <rlx/rlx.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace {

void graphs() {
  rlx::Graph g("scaled");
  const rlx::Dim n = g.symbol("n", {.min = 1, .max = 64});
  auto x = g.input("x", {{n, 2}, rlx::DType::F32});
  {
    auto scope = g.scope("head");  // labels of the nodes that follow
    g.set_outputs({2.0 * x});
  }
  std::printf("%zu nodes, output %s\n", g.num_nodes(), g.shape(g.outputs()[0]).text().c_str());
}

void building() {
  rlx::Graph g("mlp");
  auto x = g.input("x", {{8, 4}, rlx::DType::F32});
  auto w = g.param("w", {{4, 16}, rlx::DType::F32}), b = g.param("b", {{16}, rlx::DType::F32});
  auto h = g.gelu(g.matmul(x, w) + b);
  auto q = g.reshape(h, {1, 8, 16});
  auto y = g.attention(q, q, q, {.num_heads = 4, .head_dim = 4, .mask = rlx::MaskKind::Causal});
  g.set_outputs({g.softmax(y), g.top_k(h, 2).indices});
}

void values() {
  rlx::Graph g("values");
  rlx::Expr x = g.input("x", {{4}, rlx::DType::F32});
  rlx::Expr y = g.where(x < 0, -x, x / 2);
  std::printf("%s, rank %d, the same value: %s\n", y.shape().text().c_str(), y.rank(), x == y ? "yes" : "no");
}

void indexing() {
  rlx::Graph g("indexing");
  auto x = g.input("x", {{4, 3}, rlx::DType::F32});
  auto last_row = x[-1];                                        // [3]
  auto backwards = x[{rlx::Slice{.step = -1}, rlx::kNewAxis}];  // [4, 1, 3]
  auto positive = x[0][x[0] > 0];                               // as many as there are
  g.set_outputs({last_row, backwards, positive});
}

void tensors() {
  rlx::Tensor a = rlx::Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  rlx::Tensor zeros = rlx::Tensor::zeros({{2, 2}, rlx::DType::F16});
  a.set(0, 7);  // shared bytes would be copied first
  std::printf("%g %s %zu\n", a.at(0), a.cast(rlx::DType::I32).shape().text().c_str(), zeros.size_bytes());
}

rlx::Graph doubled() {
  rlx::Graph g("doubled");
  g.set_outputs({2.0 * g.input("x", {{3}, rlx::DType::F32})});
  return g;
}

void sessions() {
  rlx::Session session(rlx::Device::Cpu);
  session.with_threads(2).with_precision(rlx::Precision::BF16);
  rlx::CompiledGraph f = session.compile(doubled());
  rlx::Result<rlx::Session> gpu = rlx::Session::try_new(rlx::Device::Cuda);
  if (!gpu) std::printf("%s\n", std::string(rlx::error_code_name(gpu.error().code)).c_str());
}

void compiled_graphs() {
  rlx::CompiledGraph f = rlx::Session().compile(doubled());
  std::vector<std::vector<float>> by_values = f.run({{"x", {1, 2, 3}}});
  std::vector<rlx::Tensor> by_tensors = f.run_typed({{"x", rlx::Tensor::of<float>({3}, {1, 2, 3})}});
  float in[3] = {1, 2, 3}, out[3];  // without an allocation from the second run on
  const rlx::TensorView x{in, rlx::DType::F32, {}, sizeof in};
  const rlx::MutableTensorView y{out, rlx::DType::F32, {}, sizeof out};
  f.run_into({&x, 1}, {&y, 1});
  std::printf("%g %g %g\n", by_values[0][2], by_tensors[0].at(2), out[2]);
}

void compile_options() {
  rlx::Graph g = doubled();
  rlx::CompileOptions options;
  options.precision = rlx::PrecisionPolicy::of_precision(rlx::Precision::F32);
  options.must_alias = true;  // a state that would need a copy is an error
  auto f = rlx::Session().compile_with(std::move(g), options);
  std::printf("%zu nodes\n", f.compile_result().lir.graph.num_nodes());
}

void model_functions() {
  const rlx::ModelFunction net("net", [](rlx::Graph& g) {
    auto n = g.symbol("n", {.min = 1, .max = 64});
    return std::vector<rlx::Expr>{2.0 * g.input("x", {{n}, rlx::DType::F32})};
  });
  std::printf("%g, %zu program\n", net({{"x", rlx::Tensor::of<float>({1}, {4})}})[0].at(0), net.num_programs());
}

void derivatives() {
  rlx::Graph g("square");
  auto x = g.input("x", {{2}, rlx::DType::F32});
  g.set_outputs({g.sum(x * x)});
  auto reverse = rlx::Session().compile(rlx::value_and_grad(g, {"x"}).graph);
  auto forward = rlx::Session().compile(rlx::jvp(g, {"x"}).graph);  // its new input is tangent_x
  auto batched = rlx::Session().compile(rlx::vmap(g, {{"x", 0}}, 2).graph);
  std::printf("%g %g %g\n", reverse.run({{"x", {1, 2}}})[1][1],
              forward.run({{"x", {1, 2}}, {"tangent_x", {1, 0}}})[1][0], batched.run({{"x", {1, 2, 3, 4}}})[0][1]);
}

void texts() {
  const std::string text = rlx::print_text(doubled());
  const rlx::Graph again = rlx::parse_text(text);
  std::printf("%g\n", rlx::evaluate(again, {{"x", rlx::Tensor::of<float>({3}, {1, 2, 3})}})[0].at(2));
}

void custom_ops() {
  struct Twice {  // rules are functions or captureless lambdas
    static rlx::Result<rlx::Shapes> infer(const rlx::InferContext& c) { return c.inputs(); }
    static void decompose(rlx::DecomposeContext& c) { c.set_result(c.input(0) + c.input(0)); }
  };
  rlx::register_op(rlx::CustomOpDef("acme.twice").inputs("x").infer(Twice::infer).decompose(Twice::decompose));
  rlx::Graph g("custom");
  g.set_outputs({g.add(rlx::custom_op("acme.twice"), {g.input("x", {{2}, rlx::DType::F32})})});
  std::printf("%g\n", rlx::Session().compile(std::move(g)).run({{"x", {1, 2}}})[0][1]);
}

void devices() {
  for (rlx::Device d : rlx::available_devices()) std::printf("%s\n", std::string(rlx::device_info(d).name).c_str());
}

void errors() {
  try {
    (void)rlx::parse_text("graph @g {");
  } catch (const rlx::Error& e) {
    std::printf("%s at %s\n", std::string(rlx::error_code_name(e.code())).c_str(), e.diagnostic().where.c_str());
  }
}

void flows() {
  const rlx::ModelWeights weights =
      rlx::weights_in_memory({{"up.weight", rlx::Tensor::full({{2, 3}, rlx::DType::F32}, 1)}});
  rlx::Graph g("layer");
  rlx::Flow flow(g, weights);
  g.set_outputs({flow.linear(g.input("x", {{1, 3}, rlx::DType::F32}), "up", 2)});
  flow.finish("the layer");
  rlx::CompiledGraph f = rlx::Session().compile(std::move(g));
  const std::size_t loaded = flow.load(f);
  std::printf("%zu weight, %g\n", loaded, f.run({{"x", {1, 2, 3}}})[0][0]);
}

void files() {
  const std::string path = (std::filesystem::temp_directory_path() / "rlx_reference.safetensors").string();
  const std::vector<rlx::NamedTensor> tensors{{"w", rlx::Tensor::of<float>({2}, {1, 2})}};
  rlx::write_safetensors(path, tensors);
  std::printf("%s\n", rlx::SafetensorsFile::open(path)->names()[0].c_str());
  std::filesystem::remove(path);
}

void language_models() {
  try {
    rlx::LanguageModel model = rlx::load_language_model("folder-of-a-model");
    rlx::SentenceEncoder encoder("folder-of-an-encoder");
  } catch (const rlx::Error& e) {
    std::printf("%s\n", std::string(rlx::error_code_name(e.code())).c_str());
  }
}

}  // namespace

int main() {
  graphs();
  building();
  values();
  indexing();
  tensors();
  sessions();
  compiled_graphs();
  compile_options();
  model_functions();
  derivatives();
  texts();
  custom_ops();
  devices();
  errors();
  flows();
  files();
  language_models();
}
