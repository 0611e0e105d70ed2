// Flow: takes weights, and records their errors.
#include "rlx/models/flow.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "rlx/error.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/formats/safetensors_folder.h"
#include "rlx/ir/build/line_of_call.h"
#include "rlx/models/decoder/gguf_decoder.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

Shape shape_of(const std::vector<std::int64_t>& dims, DType dtype) {
  return Shape(Dims(dims.begin(), dims.end()), dtype);
}

class WeightsInMemory final : public WeightLoader {
 public:
  WeightsInMemory(std::vector<NamedTensor> tensors, const std::string& source) {
    for (NamedTensor& t : tensors) {
      order_.push_back(t.name);
      const std::vector<std::int64_t> dims = t.tensor.dims();
      if (!entries_.emplace(std::move(t.name), Entry{std::move(t.tensor), dims}).second)
        throw Error(ErrorCode::InvalidArgument, concat_text(source, ": '", order_.back(), "' is given twice"));
    }
  }
  std::vector<std::string> names() const override { return order_; }
  std::optional<TensorView> find(std::string_view name) const override {
    const auto at = entries_.find(name);
    if (at == entries_.end()) return std::nullopt;
    TensorView v = at->second.tensor.view();
    v.dims = at->second.dims;
    return v;
  }

 private:
  struct Entry {
    Tensor tensor;
    std::vector<std::int64_t> dims;  // views point into it
  };
  std::vector<std::string> order_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace

ModelWeights open_weights(const std::string& path) try {
  if (!is_file(path)) {
    if (std::error_code error; !std::filesystem::exists(path, error))
      throw Error(ErrorCode::NotFound, concat_text("\"", path, "\" does not exist"),
                  "give the folder of a model, a GGUF file or a safetensors file");
    const std::shared_ptr<SafetensorsFolder> folder = SafetensorsFolder::open(path);
    return {folder, folder->source()};
  }
  if (MappedFile::open(path).text().starts_with("GGUF")) return gguf_weights(GgufFile::open(path));
  return {SafetensorsFile::open(path), path};
} catch (const std::bad_alloc&) {
  throw_out_of_memory("open_weights");
}

ModelWeights weights_in_memory(std::vector<NamedTensor> tensors, std::string source) try {
  auto loader = std::make_shared<WeightsInMemory>(std::move(tensors), source);
  return {std::move(loader), std::move(source)};
} catch (const std::bad_alloc&) {
  throw_out_of_memory("weights_in_memory");
}

Flow::Flow(Graph& g, ModelWeights weights) : graph_(&g), weights_(std::move(weights)) {
  if (!weights_.loader) throw Error(ErrorCode::InvalidArgument, "Flow: the checkpoint has no loader (a null pointer)");
}

Flow::Flow(Graph& g, DType dtype) : graph_(&g), dtype_(dtype) {}

bool Flow::has(std::string_view name) const { return weights_.loader && weights_.loader->find(name).has_value(); }

const Flow::Stored& Flow::take(const std::string& name, const std::vector<std::int64_t>& dims, Start start) {
  const auto known = taken_.find(name);
  const auto disagrees = [&](const std::vector<std::int64_t>& there) {
    wrong_.push_back(concat_text("'", name, "' is ", dims_text(there), ", expected ", dims_text(dims)));
  };
  if (known != taken_.end()) {
    if (known->second.dims != dims) disagrees(known->second.dims);
    return known->second;
  }
  // A wrong weight still gets the expected shape, so that later errors are found too.
  Stored out{{}, {}, dims};
  DType dtype = dtype_;
  std::vector<std::int64_t> stored = dims;
  const std::optional<TensorView> view = weights_.loader ? weights_.loader->find(name) : std::nullopt;
  if (!weights_.loader) {  // nothing to compare with
  } else if (!view) {
    missing_.push_back(name);
  } else if (weights_.scheme && weights_.scheme(name)) {
    const QuantScheme scheme = *weights_.scheme(name);
    const BlockLayout& layout = block_layout(scheme);
    std::vector<std::int64_t> there(view->dims.begin(), view->dims.end());
    if (!there.empty()) there.back() = there.back() / layout.bytes * layout.elements;
    if (there != dims)
      disagrees(there);
    else
      dtype = DType::U8, stored.back() = dims.back() / layout.elements * layout.bytes, out.scheme = scheme;
  } else if (!is_float(view->dtype)) {
    wrong_.push_back(concat_text("'", name, "' holds ", dtype_name(view->dtype), ", expected floats"));
  } else if (!std::equal(view->dims.begin(), view->dims.end(), dims.begin(), dims.end())) {
    disagrees({view->dims.begin(), view->dims.end()});
  } else if (dims.size() > 1) {  // vectors are set as F32: a cast in every run would cost more than their bytes
    dtype = view->dtype;
  }
  if (seed_) {
    out.param = graph_->state(name, first_value(name, out, start));
    out.scheme.reset();
  } else {
    out.param = graph_->param(name, shape_of(stored, dtype));
  }
  return taken_.emplace(name, std::move(out)).first->second;
}

Expr Flow::widened(const Stored& weight, Expr codes) const {
  return weight.scheme ? graph_->dequantize(codes, *weight.scheme) : graph_->cast(codes, dtype_);
}

Expr Flow::weight(const std::string& name, const std::vector<std::int64_t>& dims, SourceLoc loc) {
  const LineOfCall line(loc);
  return started(name, dims, {});
}
Expr Flow::started(const std::string& name, const std::vector<std::int64_t>& dims, Start start) {
  const Stored& w = take(name, dims, start);
  return widened(w, w.param);
}

Expr Flow::embed(const std::string& name, Expr ids, std::int64_t rows, std::int64_t width, SourceLoc loc) {
  const LineOfCall line(loc);
  const Stored& w = take(name, {rows, width});
  return widened(w, graph_->gather(w.param, ids));
}

Expr Flow::linear(Expr x, const std::string& name, std::int64_t out, bool bias, bool in_out, SourceLoc loc) {
  const LineOfCall line(loc);
  Graph& g = *graph_;
  const std::int64_t in = x.dim(x.rank() - 1).value();
  const Expr w =
      in_out ? started(name + ".weight", {in, out}, {.inputs = in}) : g.t(weight(name + ".weight", {out, in}));
  const Expr y = g.matmul(x, w);
  return bias ? y + weight(name + ".bias", {out}) : y;
}

Expr Flow::linear_of_heads(Expr x, const std::string& name, std::int64_t heads, std::int64_t head_dim, bool bias,
                           SourceLoc loc) {
  const LineOfCall line(loc);
  if (heads < 1 || head_dim < 1)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("linear_of_heads: the number and the size of heads must be at least 1, got ", heads,
                            " and ", head_dim));
  Graph& g = *graph_;
  const std::int64_t in = x.dim(x.rank() - 1).value(), out = 3 * heads * head_dim;
  const auto turned = [&](const std::string& part, const std::vector<std::int64_t>& dims) {
    const Stored& w = take(name + part, dims);
    const Dims stored = w.param.shape().dims();
    Dims apart{heads, 3, head_dim};
    std::vector<std::int64_t> order{1, 0, 2};
    if (dims.size() == 2) apart.push_back(stored.back()), order.push_back(3);
    return widened(w, g.reshape(g.transpose(g.reshape(w.param, apart), order), stored));
  };
  const Expr y = g.matmul(x, g.t(turned(".weight", {out, in})));
  return bias ? y + turned(".bias", {out}) : y;
}

Expr Flow::norm(Expr x, const std::string& name, NormKind kind, double eps, bool bias, double offset, SourceLoc loc) {
  const LineOfCall line(loc);
  Graph& g = *graph_;
  const std::int64_t width = x.dim(x.rank() - 1).value();
  Expr gamma = started(name + ".weight", {width}, {.value = 1 - offset});
  if (offset != 0) gamma = gamma + offset;
  std::optional<Operand> beta;
  if (bias) beta = weight(name + ".bias", {width});
  return kind == NormKind::Rms ? g.rms_norm(x, gamma, beta, eps) : g.layer_norm(x, gamma, beta, eps);
}

Expr Flow::experts(const std::vector<std::string>& names, std::int64_t k, std::int64_t n, SourceLoc loc) {
  const LineOfCall line(loc);
  if (names.empty()) throw Error(ErrorCode::InvalidArgument, "Flow::experts: no expert names were given");
  Graph& g = *graph_;
  std::vector<const Stored*> weights;
  for (const std::string& name : names) weights.push_back(&take(name, {n, k}));
  // Stacks and transposes the stored matrices, which happens once, and converts the result as a whole. Quantized blocks
  // cannot be transposed.
  const bool alike = std::all_of(weights.begin(), weights.end(), [&](const Stored* w) {
    return w->scheme == weights[0]->scheme && w->param.shape() == weights[0]->param.shape();
  });
  std::vector<Expr> parts;
  for (const Stored* w : weights) parts.push_back(g.unsqueeze(alike ? w->param : widened(*w, w->param), 0));
  const Expr all = parts.size() == 1 ? parts[0] : g.concat(parts, 0);
  const auto turned = [&](Expr x) { return g.transpose(x, {0, 2, 1}); };
  if (!alike) return turned(all);
  return weights[0]->scheme ? turned(widened(*weights[0], all)) : widened(*weights[0], turned(all));
}

std::size_t Flow::load(CompiledGraph& program) const {
  if (seed_)
    throw Error(ErrorCode::InvalidArgument, "Flow::load: the weights of a trainable flow are states, not params",
                "they start with the values of the checkpoint; CompiledGraph::reset returns to them");
  if (!weights_.loader)
    throw Error(ErrorCode::InvalidArgument, "Flow::load: the flow has no checkpoint",
                "set the params of the program one by one");
  return program.load_params(weights_.loader, LoadMode::Subset);
}

void Flow::finish(std::string_view model, const std::vector<std::string>& ignored) const try {
  if (!weights_.loader) {
    if (wrong_.empty()) return;
    throw Error(ErrorCode::InvalidArgument, concat_text(model, ": ", wrong_[0]),
                "a name stands for one weight of one shape: give the weights names of their own");
  }
  std::vector<std::string> extra;
  for (const std::string& name : weights_.loader->names()) {
    const bool known =
        taken_.contains(name) ||
        std::any_of(ignored.begin(), ignored.end(), [&](const std::string& end) { return name.ends_with(end); });
    if (!known) extra.push_back(name);
  }
  constexpr std::size_t kShown = 8;
  std::vector<std::string> faults;
  const auto count = [](std::size_t n) { return concat_text(n, n == 1 ? " tensor" : " tensors"); };
  if (!missing_.empty())
    faults.push_back(concat_text(count(missing_.size()), missing_.size() == 1 ? " is missing: " : " are missing: ",
                                 quoted_names(missing_, kShown)));
  for (std::size_t i = 0; i < std::min(wrong_.size(), kShown); ++i) faults.push_back(wrong_[i]);
  if (wrong_.size() > kShown) faults.push_back(concat_text("and ", wrong_.size() - kShown, " more with wrong shapes"));
  if (!extra.empty())
    faults.push_back(concat_text(count(extra.size()), extra.size() == 1 ? " belongs" : " belong", " to no part of ",
                                 model, ": ", quoted_names(extra, kShown)));
  if (faults.empty()) return;
  std::string text = weights_.source;
  for (std::size_t i = 0; i < faults.size(); ++i) text += (i ? "; " : ": ") + faults[i];
  std::string hint = "the configuration and the weights belong to different models";
  if (wrong_.empty() && missing_.size() == 1 && !extra.empty())
    hint = did_you_mean(missing_[0], extra, hint);
  else if (extra.empty() && wrong_.empty())
    hint = "the file belongs to another model, or is incomplete";
  throw Error(ErrorCode::BadFile, text, hint);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Flow::finish");
}

}  // namespace rlx
