// Stacks of low-rank matrices, and the products with those of each token's adapter (as in S-LoRA, Sheng et al. 2023,
// arXiv:2311.03285).
#include "rlx/models/adapter_set.h"

#include <algorithm>
#include <cmath>

#include "rlx/error.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx {

AdapterSet::AdapterSet(std::span<const AdapterOptions> adapters, Naming naming) : naming_(std::move(naming)) {
  const auto refuse = [](std::string message, std::string hint = {}) {
    throw Error(ErrorCode::InvalidArgument, std::move(message), std::move(hint));
  };
  for (const AdapterOptions& o : adapters) {
    if (o.name.empty()) refuse("an adapter has no name", "requests ask for it by its name");
    for (const Adapter& other : adapters_)
      if (other.name == o.name) refuse(concat_text("two adapters are called '", o.name, "'"));
    if (o.parts.empty()) refuse(concat_text("the adapter '", o.name, "' has no parts"), "each is a folder");
    Adapter& added = adapters_.emplace_back(Adapter{o.name});
    for (const AdapterPart& p : o.parts) {
      if (!std::isfinite(p.scale)) refuse(concat_text("the scale of the adapter ", p.path, " is ", p.scale));
      added.parts.push_back({PeftAdapter(p.path), p.scale});
    }
  }
}

std::vector<std::string> AdapterSet::names() const {
  std::vector<std::string> out;
  for (const Adapter& a : adapters_) out.push_back(a.name);
  return out;
}

// What one part has for a matrix [out, in]; nothing where it has none, or where that is wrong.
std::optional<AdapterSet::Halves> AdapterSet::take(Part& part, const Module& module, std::int64_t in, std::int64_t out,
                                                   bool head) {
  const PeftAdapter& file = part.file;
  const bool targeted = file.targets(module.name, head);
  std::optional<Tensor> a = file.a(module.name), b = file.b(module.name);
  part.seen.insert(module.name);
  part.targeted = part.targeted || targeted;
  const auto fault = [&](const auto&... text) {
    faults_.push_back(concat_text(file.source(), ": '", module.name, "' ", text...));
    return std::nullopt;
  };
  if (!a && !b) {
    if (!targeted || file.targets_all()) return std::nullopt;  // which modules are linear, only the model's code knows
    return fault("is one of the target modules ", file.target_text(), ", but has no matrices");
  }
  if (!targeted) return fault("has matrices, but is none of the target modules ", file.target_text());
  if (!a || !b) return fault("has lora_", a ? "A" : "B", " without lora_", a ? "B" : "A");
  const std::int64_t rank = file.rank(module.name);
  if (a->dim(1) != in || b->dim(0) != out)
    return fault("has lora_A ", dims_text(a->dims()), " and lora_B ", dims_text(b->dims()), ", expected [rank, ", in,
                 "] and [", out, ", rank]");
  if (a->dim(0) != b->dim(1) || a->dim(0) != rank)
    return fault("has lora_A of rank ", a->dim(0), ", lora_B of rank ", b->dim(1), ", and the configuration says ",
                 rank);
  return Halves{std::move(*a), std::move(*b), part.scale * file.scale(module.name)};
}

Expr AdapterSet::add_experts(Expr y, Expr x, std::span<const std::string> stored, Expr which, Expr ids) {
  Graph& g = y.graph();
  const Expr groups = ids * static_cast<std::int64_t>(stored.size()) + g.cast(which, DType::I32);
  return add_products(y, x, stored, g.where(g.ge(ids, 0), groups, -1), ids, false);
}

// Group adapter * stored.size() + m is of the matrix stored[m].
Expr AdapterSet::add_products(Expr y, Expr x, std::span<const std::string> stored, Expr groups, Expr ids, bool head) {
  const std::int64_t in = x.dim(1).value(), out = y.dim(1).value();
  std::vector<Module> modules;
  for (const std::string& name : stored) {
    std::optional<Module> module = naming_(name, out);
    if (!module) return y;
    modules_.push_back(module->name);
    modules.push_back(std::move(*module));
  }
  std::vector<std::vector<Halves>> found;  // by group
  std::int64_t rank = 0;                   // of the stack
  for (Adapter& adapter : adapters_) {
    for (const Module& module : modules) {
      std::int64_t sum = 0;
      std::vector<Halves>& all = found.emplace_back();
      for (Part& part : adapter.parts) {
        std::optional<Halves> h = take(part, module, in, out, head);
        if (!h) continue;
        sum += h->a.dim(0);
        all.push_back(std::move(*h));
      }
      rank = std::max(rank, sum);
    }
  }
  if (rank == 0) return y;
  const auto count = static_cast<std::int64_t>(found.size());
  Tensor all_a = Tensor::zeros(Shape({count, in, rank}, DType::F32)),
         all_b = Tensor::zeros(Shape({count, rank, out}, DType::F32));
  const auto to_a = all_a.mutable_values<float>(), to_b = all_b.mutable_values<float>();
  for (std::int64_t e = 0; e < count; ++e) {
    std::int64_t first = 0;
    const std::vector<std::int64_t>& order = modules[static_cast<std::size_t>(e) % modules.size()].row_order;
    for (const Halves& h : found[static_cast<std::size_t>(e)]) {
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
  }
  Graph& g = y.graph();
  const auto param = [&](const char* half, Tensor t) {
    const std::string name = concat_text("adapters.", modules[0].name, half);
    const Expr p = g.param(name, t.shape());
    weights_.push_back({name, std::move(t)});
    return p;
  };
  const Expr down = g.grouped_dot(x, param(".a", std::move(all_a)), groups);
  const Expr added = g.grouped_dot(down, param(".b", std::move(all_b)), groups);
  // Adding zeros would make a positive zero of a negative one.
  return g.where(g.reshape(g.ge(ids, 0), {ids.dim(0), 1}), y + added, y);
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
                                     " no part of ", model, " that an adapter can change"));
      if (!part.targeted)
        faults.push_back(
            concat_text(part.file.config(), ": the target modules ", part.file.target_text(), " are none of ", model));
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
              concat_text("the adapter is of another model, whose modules are called otherwise than ",
                          quoted_names(examples), ", or was cut down"));
}

}  // namespace rlx
