// Binds rlx/functions/sequence.h: recurrent layers, state space scans, causal convolution.
#include "rlx/functions/sequence.h"
#include "python/bindings/tracing.h"
#include "rlx/ir/op_kind.h"

namespace rlx::python {
namespace {

/// Operands by name, in the graph under trace or in that of the first value.
class NamedValues {
 public:
  explicit NamedValues(nb::dict values) : values_(std::move(values)) {
    graph_ = traced_graph();
    for (auto [key, value] : values_)
      if (!graph_ && nb::isinstance<PyValue>(value)) graph_ = &graph_of(nb::cast<const PyValue&>(value));
    if (!graph_) raise(ErrorCode::InvalidArgument, "no operand is a value of a graph", "call it in a traced function");
  }
  SourceLoc loc() const { return call_.loc(); }
  Graph& graph() const { return *graph_; }
  Expr own(nb::handle value) const { return operand_from(*graph_, value, loc()); }
  std::optional<Expr> maybe(const char* name) const {
    if (!values_.contains(name)) return std::nullopt;
    const nb::object value = values_[name];
    return value.is_none() ? std::nullopt : std::optional(own(value));
  }
  Operand operator[](const char* name) const {
    const auto e = maybe(name);
    if (!e) raise(ErrorCode::InvalidArgument, concat_text("operand '", name, "' is missing"));
    return Operand(*e, loc());
  }

 private:
  nb::dict values_;
  UserCall call_;
  Graph* graph_ = nullptr;
};

ActivationKind activation_of(const std::string& name) {
  for (int i = 0; i < kNumActivationKinds; ++i)
    if (name == EnumNames<ActivationKind>::values[i]) return static_cast<ActivationKind>(i);
  raise(ErrorCode::InvalidArgument, concat_text("there is no activation '", name, "'"),
        "for example \"tanh\" or \"relu\"");
}

nb::list recurrent(const std::string& kind, nb::dict operands, nb::sequence weights, bool bidirectional,
                   bool batch_first, const std::string& fn) {
  const NamedValues in(std::move(operands));
  std::vector<nn::RecurrentWeights> layers;
  for (std::size_t i = 0; i < nb::len(weights); ++i) {
    const nb::sequence four = nb::borrow<nb::sequence>(weights[i]);
    if (nb::len(four) != 2 && nb::len(four) != 4)
      raise(
          ErrorCode::InvalidArgument,
          concat_text(kind, ": weights of a layer are (w_ih, w_hh) or (w_ih, w_hh, b_ih, b_hh), got ", nb::len(four)));
    const auto bias = [&](std::size_t place) -> std::optional<Expr> {
      if (nb::len(four) < 4) return std::nullopt;
      const nb::object b = four[place];
      return b.is_none() ? std::nullopt : std::optional(in.own(b));
    };
    layers.push_back({in.own(nb::object(four[0])), in.own(nb::object(four[1])), bias(2), bias(3)});
  }
  nn::RecurrentOptions options;
  options.bidirectional = bidirectional, options.batch_first = batch_first;
  options.lengths = in.maybe("lengths"), options.h0 = in.maybe("h0"), options.c0 = in.maybe("c0");
  if (kind == "lstm") {
    const nn::RecurrentResult r = nn::lstm(in["x"], layers, options);
    return value_list(std::vector<Expr>{r.y, r.h, r.c}, in.loc());
  }
  const nn::RecurrentResult r =
      kind == "gru" ? nn::gru(in["x"], layers, options) : nn::rnn(in["x"], layers, options, activation_of(fn));
  return value_list(std::vector<Expr>{r.y, r.h}, in.loc());
}

nb::list state_space(const std::string& kind, nb::dict operands, bool softplus, std::optional<std::int64_t> chunk,
                     std::optional<double> scale) {
  const NamedValues in(std::move(operands));
  nn::ScanResult r;
  if (kind == "selective_scan") {
    r = nn::selective_scan(in["x"], in["delta"], in["a"], in["b"], in["c"],
                           {in.maybe("d"), in.maybe("z"), in.maybe("delta_bias"), in.maybe("state"), softplus});
  } else if (kind == "mamba2") {
    nn::Mamba2Options o{in.maybe("d"), in.maybe("z"), in.maybe("dt_bias"), in.maybe("state"), softplus};
    if (chunk) o.chunk = *chunk;
    r = nn::mamba2(in["x"], in["dt"], in["a"], in["b"], in["c"], o);
  } else {
    nn::GatedDeltaOptions o{in.maybe("state"), scale};
    if (chunk) o.chunk = *chunk;
    r = nn::gated_delta_net(in["q"], in["k"], in["v"], in["g"], in["beta"], o);
  }
  return value_list(std::vector<Expr>{r.y, r.state}, in.loc());
}

nb::list causal_conv(nb::dict operands) {
  const NamedValues in(std::move(operands));
  nn::CausalConvOptions options;
  options.context = in.maybe("context"), options.bias = in.maybe("bias");
  const nn::CausalConvResult r = nn::causal_conv1d(in["x"], in["w"], options);
  return value_list(std::vector<Expr>{r.y, r.context}, in.loc());
}

}  // namespace

void bind_sequence(nb::module_& m) {
  m.def("recurrent", recurrent, nb::arg("kind"), nb::arg("operands"), nb::arg("weights"), nb::arg("bidirectional"),
        nb::arg("batch_first"), nb::arg("fn"));
  m.def("state_space", state_space, nb::arg("kind"), nb::arg("operands"), nb::arg("softplus"),
        nb::arg("chunk").none() = nb::none(), nb::arg("scale").none() = nb::none());
  m.def("causal_conv", causal_conv, nb::arg("operands"));
}

}  // namespace rlx::python
