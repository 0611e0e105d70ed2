// Model building blocks over the weights of a checkpoint.
#include "rlx/models/flow.h"
#include "python/bindings/runtime.h"
#include "python/bindings/text.h"

namespace rlx::python {
namespace {

ModelWeights weights_from(nb::handle h) {
  if (!nb::isinstance<nb::dict>(h)) return open_weights(existing(nb::cast<std::filesystem::path>(h)));
  std::vector<NamedTensor> arrays;
  for (const auto [key, value] : nb::borrow<nb::dict>(h)) {
    const std::string name = text_from(key, "Flow: the name of a weight");
    const Tensor t = on_host(tensor_from(value, name.c_str()));
    // Copies the bytes, because their owner may write to them later.
    arrays.push_back({name, nb::isinstance<PyArray>(value) ? t : Tensor::copy_of(t.data(), t.shape())});
  }
  return weights_in_memory(std::move(arrays), "the dict of arrays");
}

// Keeps the graph alive as long as the flow.
struct PyFlow {
  PyFlow(nb::object on, nb::handle weights)
      : keeps_graph(std::move(on)), graph(nb::cast<PyGraph&>(keeps_graph)), flow(graph.get(), weights_from(weights)) {}
  nb::object keeps_graph;
  PyGraph& graph;
  Flow flow;

  // The flow. Throws if its graph was compiled, which consumes the graph.
  Flow& get() {
    (void)graph.get();
    return flow;
  }
  /// Calls f with the flow, at the user's line.
  template <class F>
  nb::object built(F&& f) {
    const UserCall line;
    return value_object(f(get()), line.loc());
  }
  Expr operand(nb::handle x) { return operand_from(graph.get(), x, user_line()); }
};

NormKind norm_from(const std::string& kind) {
  if (kind == "rms") return NormKind::Rms;
  if (kind == "layer") return NormKind::Layer;
  raise(ErrorCode::InvalidArgument, concat_text("norm: kind '", kind, "' is not one of rms and layer"));
}

}  // namespace

void bind_flow(nb::module_& m) {
  nb::class_<PyFlow>(m, "Flow",
                     "Adds model building blocks to a graph, with weights of a checkpoint by name. weights: a Hugging "
                     "Face folder, a safetensors or GGUF file, or a dict of arrays. Each weight becomes a param with "
                     "the dtype of the checkpoint (GGUF blocks stay quantized); its value in the graph is float32. "
                     "finish() reports all tensors that do not fit. load() sets the params of a compiled program.")
      .def(
          "__init__",
          [](PyFlow* self, nb::handle graph, nb::handle weights) {
            (void)cast_as<PyGraph&>(graph, "Flow: graph");
            new (self) PyFlow(nb::borrow(graph), weights);
          },
          nb::arg("graph").none(), nb::arg("weights"))
      .def(
          "has", [](PyFlow& f, const std::string& name) { return f.get().has(name); }, nb::arg("name"),
          "True if the checkpoint has a tensor of this name.")
      .def(
          "weight",
          [](PyFlow& f, const std::string& name, const std::vector<std::int64_t>& shape) {
            return f.built([&](Flow& flow) { return flow.weight(name, shape); });
          },
          nb::arg("name"), nb::arg("shape"), "The weight of this name and shape, as float32.")
      .def(
          "embed",
          [](PyFlow& f, const std::string& name, nb::handle ids, std::int64_t rows, std::int64_t width) {
            return f.built([&](Flow& flow) { return flow.embed(name, f.operand(ids), rows, width); });
          },
          nb::arg("name"), nb::arg("ids"), nb::arg("rows"), nb::arg("width"),
          "An embedding lookup: the rows `ids` of the table [rows, width], [.., width].")
      .def(
          "linear",
          [](PyFlow& f, nb::handle x, const std::string& name, std::int64_t out, bool bias, bool in_out) {
            return f.built([&](Flow& flow) { return flow.linear(f.operand(x), name, out, bias, in_out); });
          },
          nb::arg("x"), nb::arg("name"), nb::arg("out"), nb::kw_only(), nb::arg("bias") = false,
          nb::arg("in_out") = false,
          "A linear layer: x [.., K] @ name.weight^T of a weight [out, K] (in_out: a weight [K, out]), plus name.bias "
          "[out] with bias.")
      .def(
          "norm",
          [](PyFlow& f, nb::handle x, const std::string& name, const std::string& kind, double eps, bool bias,
             double offset) {
            return f.built(
                [&](Flow& flow) { return flow.norm(f.operand(x), name, norm_from(kind), eps, bias, offset); });
          },
          nb::arg("x"), nb::arg("name"), nb::kw_only(), nb::arg("kind") = "rms", nb::arg("eps") = 1e-6,
          nb::arg("bias") = false, nb::arg("offset") = 0.0,
          "An \"rms\" or \"layer\" norm over the last axis, with the scale name.weight + offset and, with bias, "
          "name.bias.")
      .def(
          "experts",
          [](PyFlow& f, const std::vector<std::string>& names, std::int64_t k, std::int64_t n) {
            return f.built([&](Flow& flow) { return flow.experts(names, k, n); });
          },
          nb::arg("names"), nb::arg("k"), nb::arg("n"),
          "The matrices of these names, [n, k] each, stacked to [E, k, n].")
      .def(
          "finish",
          [](PyFlow& f, const std::string& model, const std::vector<std::string>& ignored) {
            f.get().finish(model, ignored);
          },
          nb::arg("model") = "the model", nb::kw_only(), nb::arg("ignored") = std::vector<std::string>(),
          "Checks the tensors of the checkpoint. Raises BadFile that names every tensor that is missing, has another "
          "shape, is not floating, or is unused (except names that end with an entry of ignored).")
      .def(
          "load",
          [](PyFlow& f, PyCompiled& program) {
            const nb::gil_scoped_release free;
            return f.flow.load(program.program);
          },
          nb::arg("program"), "Sets the params of a compiled program from the checkpoint. Returns their number.");
}

}  // namespace rlx::python
