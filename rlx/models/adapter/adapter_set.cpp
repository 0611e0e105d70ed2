// Stacks of low-rank matrices, and grouped matmuls with each token's adapter (as in S-LoRA, Sheng et al. 2023,
// arXiv:2311.03285); DoRA magnitudes, and replaced weights.
#include "rlx/models/adapter/adapter_set.h"

#include <algorithm>
#include <cmath>

#include "rlx/error.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx {

AdapterSet::AdapterSet(std::span<const AdapterOptions> adapters, Model model) : model_(std::move(model)) {
  const auto refuse = [](std::string message, std::string hint = {}) {
    throw Error(ErrorCode::InvalidArgument, std::move(message), std::move(hint));
  };
  for (const AdapterOptions& o : adapters) {
    if (o.name.empty()) refuse("an adapter has no name", "requests select an adapter by its name");
    for (const Adapter& other : adapters_)
      if (other.name == o.name) refuse(concat_text("two adapters are called '", o.name, "'"));
    if (o.parts.empty()) refuse(concat_text("the adapter '", o.name, "' has no folders"), "give at least one folder");
    Adapter& added = adapters_.emplace_back(Adapter{o.name});
    for (const AdapterPart& p : o.parts) {
      if (!std::isfinite(p.scale)) refuse(concat_text("the scale of the adapter ", p.path, " is ", p.scale));
      added.parts.push_back({PeftAdapter(p.path), p.scale});
    }
    for (const Part& part : added.parts)
      if (part.file.has_magnitudes() && added.parts.size() > 1)
        throw Error(ErrorCode::Unsupported,
                    concat_text(part.file.config(), ": DoRA changes what other parts of the adapter '", o.name,
                                "' add, so a DoRA adapter must be the only part"));
  }
}

std::vector<std::string> AdapterSet::names() const {
  std::vector<std::string> out;
  for (const Adapter& a : adapters_) out.push_back(a.name);
  return out;
}

template <class... Text>
void AdapterSet::fault(const Part& part, const Module& module, const Text&... text) {
  faults_.push_back(concat_text(part.file.source(), ": '", module.name, "' ", text...));
}

// PEFT's names of these matrices of the model. Empty when one of them has none.
std::vector<AdapterSet::Module> AdapterSet::named(std::span<const std::string> stored, std::int64_t rows) {
  std::vector<Module> out;
  for (const std::string& name : stored) {
    std::optional<Module> module = model_.naming(name, rows);
    if (!module) return {};
    module->stored = name;
    modules_.push_back(module->name);
    out.push_back(std::move(*module));
  }
  return out;
}

// Checks that base weights in PEFT's file equal the model's.
void AdapterSet::check_base(const Part& part, const Module& module) {
  const std::optional<Tensor> base = part.file.base_weight(module.name);
  if (!base) return;
  const Tensor own = model_.weight(module.stored + ".weight");
  bool same = own.dims() == base->dims() && module.added == 0;
  const std::int64_t row = own.rank() > 0 ? own.dim(-1) : 1;
  for (std::int64_t r = 0; same && r < own.num_elements() / std::max<std::int64_t>(row, 1); ++r) {
    const std::int64_t from = module.row_order.empty() ? r : module.row_order[static_cast<std::size_t>(r)];
    const auto at = [&](const Tensor& t, std::int64_t i) {
      return t.values<float>().subspan(static_cast<std::size_t>(i * row), static_cast<std::size_t>(row));
    };
    same = std::equal(at(own, r).begin(), at(own, r).end(), at(*base, from).begin());
  }
  if (!same)
    fault(part, module, "has a base_layer.weight ", dims_text(base->dims()),
          " that differs from the model's: save the adapter again, with save_embedding_layers=False");
}

// Whether a part replaces a module of these dims as a whole.
AdapterSet::Saved AdapterSet::take_saved(Change& change, Part& part, const Module& module,
                                         const std::vector<std::int64_t>& dims, bool has_bias) {
  const PeftAdapter& file = part.file;
  std::optional<Tensor> w = file.saved_weight(module.name), b = file.saved_bias(module.name);
  part.seen.insert(module.name);
  if (!w && !b) {
    if (file.saves(module.name)) fault(part, module, "is in \"modules_to_save\", but has no tensor");
    return Saved::No;
  }
  if (file.a(module.name) || file.b(module.name) || file.embedding_a(module.name)) {
    fault(part, module, "has both a full replacement and low-rank matrices");
  } else if (change.weight) {
    fault(part, module, "is also replaced by another part of the adapter");
  } else if (!w || w->dims() != dims) {
    fault(part, module, "is ", w ? dims_text(w->dims()) : std::string("missing"), ", expected ", dims_text(dims));
  } else if (b.has_value() != has_bias || (b && b->dims() != std::vector{dims[module.turned ? 1 : 0]})) {
    fault(part, module,
          b ? "has a bias, but the layer in the model has none" : "has no bias, but the layer in the model has one");
  } else {
    change.weight = std::move(w), change.bias = std::move(b);
    return Saved::Taken;
  }
  return Saved::Wrong;
}

// Takes one part's change of a matrix, if it has one.
void AdapterSet::take(Change& change, Part& part, const Module& module, std::int64_t in, std::int64_t out,
                      bool has_bias, bool head) {
  const PeftAdapter& file = part.file;
  const bool targeted = file.targets(module.name, head);
  part.targeted = part.targeted || targeted;
  const Saved saved =
      take_saved(change, part, module, module.turned ? std::vector{in, out} : std::vector{out, in}, has_bias);
  if (saved == Saved::Wrong) return;
  if (saved == Saved::Taken) {
    // The matmul layout, [in, out], in the row order of the model's file.
    Tensor turned = Tensor::uninitialized(Shape({in, out}, DType::F32));
    const auto to = turned.mutable_values<float>();
    const auto from = change.weight->values<float>();
    const auto row_of = [&](std::int64_t n) {
      return module.row_order.empty() ? n : module.row_order[static_cast<std::size_t>(n)];
    };
    for (std::int64_t k = 0; k < in; ++k)
      for (std::int64_t n = 0; n < out; ++n)
        to[static_cast<std::size_t>(k * out + n)] =
            from[static_cast<std::size_t>(module.turned ? k * out + row_of(n) : row_of(n) * in + k)];
    change.weight = std::move(turned);
    if (change.bias && !module.row_order.empty()) {
      const Tensor own = *change.bias;
      Tensor moved = Tensor::uninitialized(own.shape());
      for (std::int64_t n = 0; n < out; ++n)
        moved.mutable_values<float>()[static_cast<std::size_t>(n)] =
            own.values<float>()[static_cast<std::size_t>(row_of(n))];
      change.bias = std::move(moved);
    }
    return;
  }
  check_base(part, module);
  std::optional<Tensor> a = file.a(module.name), b = file.b(module.name), lengths = file.magnitudes(module.name);
  if (file.embedding_a(module.name) || file.embedding_b(module.name))
    return fault(part, module, "has lora_embedding matrices, but is not an embedding");
  if (!a && !b && !lengths) {
    // Only the model's code knows which modules are linear.
    if (targeted && !file.targets_all())
      fault(part, module, "is one of the target modules ", file.target_text(), ", but has no matrices");
    return;
  }
  if (!targeted) return fault(part, module, "has matrices, but is not one of the target modules ", file.target_text());
  if (!a || !b)
    return fault(part, module,
                 a || b ? concat_text("has lora_", a ? "A" : "B", " without lora_", a ? "B" : "A")
                        : std::string("has a lora_magnitude_vector without lora_A and lora_B"));
  const std::int64_t rank = file.rank(module.name);
  if (a->dim(1) != in || b->dim(0) != out)
    return fault(part, module, "has lora_A ", dims_text(a->dims()), " and lora_B ", dims_text(b->dims()),
                 ", expected [rank, ", in, "] and [", out, ", rank]");
  if (a->dim(0) != b->dim(1) || a->dim(0) != rank)
    return fault(part, module, "has lora_A of rank ", a->dim(0), ", lora_B of rank ", b->dim(1),
                 ", and the configuration says ", rank);
  if (file.has_magnitudes() && (!lengths || lengths->dim(0) != out))
    return fault(part, module,
                 lengths
                     ? concat_text("has a lora_magnitude_vector ", dims_text(lengths->dims()), ", expected [", out, "]")
                     : std::string("has no lora_magnitude_vector, which DoRA needs"));
  change.pairs.push_back({std::move(*a), std::move(*b), part.scale * file.scale(module.name)});
  change.lengths = std::move(lengths);
}

void AdapterSet::take_embedding(Change& change, Part& part, const Module& module, std::int64_t rows,
                                std::int64_t width) {
  const PeftAdapter& file = part.file;
  const bool targeted = file.targets(module.name, false);
  part.targeted = part.targeted || (targeted && !file.targets_all());
  if (take_saved(change, part, module, {rows, width}, false) != Saved::No) return;
  check_base(part, module);
  std::optional<Tensor> a = file.embedding_a(module.name), b = file.embedding_b(module.name);
  if (file.a(module.name) || file.b(module.name) || file.magnitudes(module.name))
    return fault(part, module, "has lora_A or lora_B, but is an embedding");
  if (!a && !b) {
    if (targeted && !file.targets_all())
      fault(part, module, "is one of the target modules ", file.target_text(), ", but has no matrices");
    return;
  }
  if (!targeted) return fault(part, module, "has matrices, but is not one of the target modules ", file.target_text());
  if (!a || !b)
    return fault(part, module, "has lora_embedding_", a ? "A" : "B", " without lora_embedding_", a ? "B" : "A");
  const std::int64_t rank = file.rank(module.name);
  if (a->dims() != std::vector{rank, rows} || b->dims() != std::vector{width, rank})
    return fault(part, module, "has lora_embedding_A ", dims_text(a->dims()), " and lora_embedding_B ",
                 dims_text(b->dims()), ", expected [", rank, ", ", rows, "] and [", width, ", ", rank, "]");
  change.pairs.push_back({std::move(*a), std::move(*b), part.scale * file.scale(module.name)});
}

// Two parts of a layer may share a norm and ask for its param twice.
Expr AdapterSet::param(const std::string& name, Tensor value, Graph& g) {
  const std::string whole = concat_text("adapters.", name);
  if (const auto known = params_.find(whole); known != params_.end()) return known->second;
  const Expr p = g.param(whole, value.shape());
  weights_.push_back({whole, std::move(value)});
  params_.emplace(whole, p);
  return p;
}

Expr AdapterSet::add_experts(Expr y, Expr x, std::span<const std::string> stored, Expr which, Expr ids) {
  Graph& g = y.graph();
  const Expr groups = ids * static_cast<std::int64_t>(stored.size()) + g.cast(which, DType::I32);
  return add_products(y, x, stored, g.where(g.ge(ids, 0), groups, -1), ids, {}, false);
}

// The factors by which DoRA lengthens the rows of the changed matrix. Row n of the model's file is row row_order[n] of
// the adapter.
void AdapterSet::put_gains(std::span<float> to, const Change& change, const Module& module, std::int64_t in,
                           std::int64_t out, bool in_out) {
  const Tensor weight = model_.weight(module.stored + ".weight");
  if (weight.dims() != (in_out ? std::vector{in, out} : std::vector{out, in})) return;  // Flow reports it
  const auto w = weight.values<float>(), lengths = change.lengths->values<float>();
  const LowRankPair& h = change.pairs[0];
  const auto a = h.a.values<float>(), b = h.b.values<float>();
  const std::int64_t rank = h.a.dim(0);
  std::vector<float> row(static_cast<std::size_t>(in));
  for (std::int64_t n = 0; n < out; ++n) {
    const std::int64_t own = module.row_order.empty() ? n : module.row_order[static_cast<std::size_t>(n)];
    for (std::int64_t k = 0; k < in; ++k)
      row[static_cast<std::size_t>(k)] = w[static_cast<std::size_t>(in_out ? k * out + n : n * in + k)];
    for (std::int64_t i = 0; i < rank; ++i) {
      const auto c = static_cast<float>(h.scale * static_cast<double>(b[static_cast<std::size_t>(own * rank + i)]));
      const float* half = a.data() + i * in;
      for (std::int64_t k = 0; k < in; ++k) row[static_cast<std::size_t>(k)] += c * half[k];
    }
    double sum = 0;
    for (const float v : row) sum += static_cast<double>(v) * static_cast<double>(v);
    const double gain = static_cast<double>(lengths[static_cast<std::size_t>(own)]) / std::sqrt(sum) - 1;
    if (!std::isfinite(gain)) {
      faults_.push_back(concat_text("'", module.name, "': row ", own, " of the changed matrix has the norm ",
                                    std::sqrt(sum), ", so its magnitude cannot be changed"));
      return;
    }
    to[static_cast<std::size_t>(n)] = static_cast<float>(gain);
  }
}

// Group adapter * stored.size() + m belongs to the matrix stored[m].
Expr AdapterSet::add_products(Expr y, Expr x, std::span<const std::string> stored, Expr groups, Expr ids,
                              std::optional<Expr> bias, bool head) {
  const std::int64_t in = x.dim(1).value(), out = y.dim(1).value();
  const std::vector<Module> modules = named(stored, out);
  if (modules.empty()) return y;
  std::vector<Change> changes;  // by group
  std::int64_t rank = 0;        // rank of the stack
  bool has_lengths = false;
  for (Adapter& adapter : adapters_) {
    for (const Module& module : modules) {
      Change& change = changes.emplace_back();
      for (Part& part : adapter.parts) take(change, part, module, in, out, bias.has_value(), head);
      std::int64_t sum = 0;
      for (const LowRankPair& h : change.pairs) sum += h.a.dim(0);
      rank = std::max(rank, sum);
      has_lengths = has_lengths || change.lengths;
    }
  }
  Graph& g = y.graph();
  const std::string& name = modules[0].name;
  const auto apply = [&](Expr stack, Expr which) { return g.grouped_dot(x, stack, which); };
  if (rank == 0) return replaced(y, changes, groups, ids, name, apply);
  const auto count = static_cast<std::int64_t>(changes.size());
  Tensor all_a = Tensor::zeros(Shape({count, in, rank}, DType::F32)),
         all_b = Tensor::zeros(Shape({count, rank, out}, DType::F32)), gains;
  if (has_lengths) gains = Tensor::zeros(Shape({count, out}, DType::F32));
  const auto to_a = all_a.mutable_values<float>(), to_b = all_b.mutable_values<float>();
  for (std::int64_t e = 0; e < count; ++e) {
    std::int64_t first = 0;
    const Change& change = changes[static_cast<std::size_t>(e)];
    const Module& module = modules[static_cast<std::size_t>(e) % modules.size()];
    const std::vector<std::int64_t>& order = module.row_order;
    for (const LowRankPair& h : change.pairs) {
      const auto a = h.a.values<float>(), b = h.b.values<float>();
      const std::int64_t r = h.a.dim(0);
      for (std::int64_t i = 0; i < r; ++i) {
        for (std::int64_t k = 0; k < in; ++k)
          to_a[static_cast<std::size_t>((e * in + k) * rank + first + i)] = a[static_cast<std::size_t>(i * in + k)];
        for (std::int64_t n = 0; n < out; ++n) {
          const std::int64_t row = order.empty() ? n : order[static_cast<std::size_t>(n)];
          to_b[static_cast<std::size_t>((e * rank + first + i) * out + n)] =
              static_cast<float>(h.scale * static_cast<double>(b[static_cast<std::size_t>(row * r + i)]));
        }
      }
      first += r;
    }
    if (change.lengths)
      put_gains(gains.mutable_values<float>().subspan(static_cast<std::size_t>(e * out), static_cast<std::size_t>(out)),
                change, module, in, out, model_.in_out && !head);
  }
  const Expr down = g.grouped_dot(x, param(name + ".a", std::move(all_a), g), groups);
  const Expr added = g.grouped_dot(down, param(name + ".b", std::move(all_b), g), groups);
  Expr changed = y + added;
  if (has_lengths) {
    const Expr gain = g.gather(param(name + ".gain", std::move(gains), g), groups);
    changed = changed + gain * ((bias ? y - *bias : y) + added);
  }
  // Selects by `where`: adding zeros would turn negative zeros into positive ones.
  const Expr out_rows = g.where(g.reshape(g.ge(ids, 0), {ids.dim(0), 1}), changed, y);
  return replaced(out_rows, changes, groups, ids, name, apply);
}

// Replaces rows of y [T, .., N] by apply(stack, which) where a token's group has a matrix of its own. `which` is its
// index in the stack, -1 for none.
Expr AdapterSet::replaced(Expr y, std::span<const Change> changes, Expr groups, Expr ids, const std::string& name,
                          const std::function<Expr(Expr stack, Expr which)>& apply) {
  std::vector<std::int32_t> place(changes.size(), -1);
  std::vector<const Change*> saved;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (!changes[i].weight) continue;
    if (!saved.empty() && changes[i].weight->dims() != saved[0]->weight->dims()) return y;  // an error was recorded
    place[i] = static_cast<std::int32_t>(saved.size());
    saved.push_back(&changes[i]);
  }
  if (saved.empty()) return y;
  Graph& g = y.graph();
  const auto stacked = [&](const char* end, auto of) {
    std::vector<std::int64_t> dims = of(*saved[0]).dims();
    dims.insert(dims.begin(), static_cast<std::int64_t>(saved.size()));
    Tensor all = Tensor::uninitialized(Shape(Dims(dims.begin(), dims.end()), DType::F32));
    auto to = all.mutable_values<float>().begin();
    for (const Change* c : saved)
      to = std::copy(of(*c).template values<float>().begin(), of(*c).template values<float>().end(), to);
    return param(name + end, std::move(all), g);
  };
  const auto count = static_cast<std::int64_t>(place.size());
  const Expr chosen = g.gather(g.constant(Tensor::of<std::int32_t>({count}, place)), groups);
  const Expr which = g.where(g.ge(groups, 0), chosen, -1);
  Expr z = apply(stacked(".saved", [](const Change& c) -> const Tensor& { return *c.weight; }), which);
  const Dim tokens = ids.dim(0);
  if (saved[0]->bias) {
    const Expr b = g.gather(stacked(".saved_bias", [](const Change& c) -> const Tensor& { return *c.bias; }), which);
    z = z + (y.rank() == 2 ? b : g.reshape(b, {tokens, 1, y.dim(y.rank() - 1)}));
  }
  const Expr is = g.ge(which, 0);
  return g.where(y.rank() == 2 ? g.reshape(is, {tokens, 1}) : g.reshape(is, {tokens, 1, 1}), z, y);
}

Expr AdapterSet::embed(Expr x, Expr tokens, const std::string& stored, std::int64_t rows, Expr ids) {
  const std::int64_t width = x.dim(1).value();
  const std::vector<Module> modules = named({&stored, 1}, rows);
  if (modules.empty()) return x;
  std::vector<Change> changes;
  std::int64_t rank = 0;
  for (Adapter& adapter : adapters_) {
    Change& change = changes.emplace_back();
    for (Part& part : adapter.parts) take_embedding(change, part, modules[0], rows, width);
    std::int64_t sum = 0;
    for (const LowRankPair& h : change.pairs) sum += h.a.dim(0);
    rank = std::max(rank, sum);
  }
  Graph& g = x.graph();
  const std::string& name = modules[0].name;
  const auto count = static_cast<std::int64_t>(changes.size());
  if (count * rows > std::int64_t{1} << 30) {
    faults_.push_back(concat_text("'", name, "' has ", rows, " rows, too many for ", count, " adapters at once"));
    return x;
  }
  const auto apply = [&](Expr stack, Expr which) {
    const Expr table = g.reshape(stack, {stack.dim(0) * Dim(rows), width});
    return g.gather(table, g.max(which, 0) * rows + tokens);
  };
  if (rank > 0) {
    Tensor all_a = Tensor::zeros(Shape({count * rows, rank}, DType::F32)),
           all_b = Tensor::zeros(Shape({count, rank, width}, DType::F32));
    const auto to_a = all_a.mutable_values<float>(), to_b = all_b.mutable_values<float>();
    for (std::int64_t e = 0; e < count; ++e) {
      std::int64_t first = 0;
      for (const LowRankPair& h : changes[static_cast<std::size_t>(e)].pairs) {
        const auto a = h.a.values<float>(), b = h.b.values<float>();
        const std::int64_t r = h.a.dim(0);
        for (std::int64_t i = 0; i < r; ++i) {
          for (std::int64_t v = 0; v < rows; ++v)
            to_a[static_cast<std::size_t>((e * rows + v) * rank + first + i)] =
                a[static_cast<std::size_t>(i * rows + v)];
          for (std::int64_t n = 0; n < width; ++n)
            to_b[static_cast<std::size_t>((e * rank + first + i) * width + n)] =
                static_cast<float>(h.scale * static_cast<double>(b[static_cast<std::size_t>(n * r + i)]));
        }
        first += r;
      }
    }
    const Expr down = g.gather(param(name + ".a", std::move(all_a), g), g.max(ids, 0) * rows + tokens);
    const Expr added = g.grouped_dot(down, param(name + ".b", std::move(all_b), g), ids);
    x = g.where(g.reshape(g.ge(ids, 0), {ids.dim(0), 1}), x + added, x);
  }
  return replaced(x, changes, ids, ids, name, apply);
}

Expr AdapterSet::norm(Expr y, const std::function<Expr()>& plain, const std::string& stored, double offset, bool bias,
                      Expr ids) {
  const std::int64_t width = y.dim(y.rank() - 1).value();
  const std::vector<Module> modules = named({&stored, 1}, width);
  if (modules.empty()) return y;
  std::vector<Change> changes;
  for (Adapter& adapter : adapters_) {
    Change& change = changes.emplace_back();
    for (Part& part : adapter.parts)
      if (take_saved(change, part, modules[0], {width}, bias) == Saved::Taken)
        for (float& v : change.weight->mutable_values<float>()) v += modules[0].added;
  }
  Graph& g = y.graph();
  return replaced(y, changes, ids, ids, modules[0].name, [&](Expr stack, Expr which) {
    Expr gamma = g.gather(stack, which);
    if (offset != 0) gamma = gamma + offset;
    return plain() * (y.rank() == 2 ? gamma : g.reshape(gamma, {ids.dim(0), 1, width}));
  });
}

void AdapterSet::finish(std::string_view model) const {
  std::vector<std::string> faults = faults_;
  for (const Adapter& adapter : adapters_) {
    for (const Part& part : adapter.parts) {
      std::vector<std::string> extra;
      for (const std::string& module : part.file.modules())
        if (!part.seen.contains(module)) extra.push_back(module);
      if (!extra.empty())
        faults.push_back(concat_text(part.file.source(), ": ", quoted_names(extra), extra.size() == 1 ? " is" : " are",
                                     " not a part of ", model, " that an adapter can change"));
      if (!part.targeted)
        faults.push_back(concat_text(part.file.config(), ": the target modules ", part.file.target_text(),
                                     " match nothing in ", model));
    }
  }
  if (faults.empty()) return;
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(faults.size(), kShown); ++i) text += (i ? "; " : "") + faults[i];
  if (faults.size() > kShown) text += concat_text("; and ", faults.size() - kShown, " more");
  std::vector<std::string> examples(
      modules_.begin(), modules_.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(modules_.size(), 3)));
  throw Error(ErrorCode::BadFile, text,
              concat_text("the adapter belongs to another model, whose modules have other names than ",
                          quoted_names(examples), ", or is incomplete"));
}

}  // namespace rlx
