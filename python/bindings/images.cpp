// Functions of rlx/functions over images: pools, resizes, norms.
#include "python/bindings/common.h"
#include "rlx/functions/image.h"
#include "rlx/functions/norms.h"
#include "rlx/functions/pool.h"
#include "rlx/ir/builder.h"
#include "rlx/ir/ops/conv.h"

namespace rlx::python {
namespace {

// The operands of a call as values of the graph under trace, or of the graph of the first value among them; None is no
// operand.
class ImageCall {
 public:
  explicit ImageCall(nb::sequence operands) : loc_(user_line()) {
    const std::size_t n = nb::len(operands);
    Graph* g = traced_graph();
    for (std::size_t i = 0; i < n && !g; ++i) {
      const nb::object o = operands[i];
      if (nb::isinstance<PyValue>(o)) g = &graph_of(nb::cast<const PyValue&>(o));
    }
    if (!g)
      raise(ErrorCode::InvalidArgument, "there is no graph to add to",
            "call it on a graph's values, or in a function under rlx.jit");
    for (std::size_t i = 0; i < n; ++i) {
      const nb::object o = operands[i];
      values_.push_back(o.is_none() ? std::nullopt : std::optional(Operand(operand_from(*g, o, loc_), loc_)));
    }
  }
  Operand at(std::size_t i) const {
    if (i >= values_.size() || !values_[i]) raise(ErrorCode::InvalidArgument, "an operand is missing");
    return *values_[i];
  }
  std::optional<Operand> maybe(std::size_t i) const { return i < values_.size() ? values_[i] : std::nullopt; }
  nb::object one(Expr e) const { return value_object(std::move(e), loc_); }
  nb::tuple two(Expr a, Expr b) const { return nb::make_tuple(one(std::move(a)), one(std::move(b))); }

 private:
  SourceLoc loc_;
  std::vector<std::optional<Operand>> values_;
};

template <class E>
E named(const std::string& name, const char* what) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::size(EnumNames<E>::values); ++i) {
    if (name == EnumNames<E>::values[i]) return static_cast<E>(i);
    names.emplace_back(EnumNames<E>::values[i]);
  }
  raise(ErrorCode::InvalidArgument, concat_text(what, " '", name, "' is not known"),
        did_you_mean(name, names, quoted_names(names, 20)));
}

using Ints = std::vector<std::int64_t>;

}  // namespace

void bind_images(nb::module_& m) {
  m.def("pool",
        [](nb::sequence xs, const std::string& fn, double p, const Ints& window, const Ints& strides, const Ints& low,
           const Ints& high, const Ints& dilation, const std::string& padding, bool ceil_mode, bool count_include_pad,
           bool channels_last) -> nb::object {
          nn::PoolOptions o{window, strides, low, high, dilation};
          o.padding = padding == "SAME"         ? nn::PoolPadding::Same
                      : padding == "SAME_LOWER" ? nn::PoolPadding::SameLower
                                                : nn::PoolPadding::Given;
          o.ceil_mode = ceil_mode, o.count_include_pad = count_include_pad, o.channels_last = channels_last;
          const ImageCall c(xs);
          if (fn == "lp") return c.one(nn::lp_pool(c.at(0), p, o));
          if (fn == "max_with_indices") {
            const nn::IndexedPool both = nn::max_pool_with_indices(c.at(0), o);
            return c.two(both.values, both.indices);
          }
          return c.one(nn::pool(named<ReduceKind>(fn, "pool"), c.at(0), o));
        });
  m.def("max_unpool", [](nb::sequence xs, nb::handle space) {
    const Dims dims = dims_from(space);
    const ImageCall c(xs);
    return c.one(nn::max_unpool(c.at(0), c.at(1), dims));
  });
  m.def("adaptive_pool", [](nb::sequence xs, bool max, const Ints& sizes, bool channels_last) {
    const ImageCall c(xs);
    return c.one(max ? nn::adaptive_max_pool(c.at(0), sizes, channels_last)
                     : nn::adaptive_avg_pool(c.at(0), sizes, channels_last));
  });
  m.def("resize", [](nb::sequence xs, const Ints& axes, const Ints& sizes, const std::string& kind,
                     const std::string& places, const std::string& rounding, bool antialias, bool renormalize,
                     double cubic_a, const std::vector<double>& scales) {
    nn::ResizeOptions o;
    o.kind = named<ResizeKind>(kind, "resize: kind");
    o.places = named<ResizePlaces>(places, "resize: places");
    o.rounding = named<ResizeRounding>(rounding, "resize: rounding");
    o.antialias = antialias, o.renormalize = renormalize, o.cubic_a = cubic_a, o.scales = scales;
    const ImageCall c(xs);
    return c.one(nn::resize(c.at(0), axes, sizes, o));
  });
  m.def("group_norm", [](nb::sequence xs, std::int64_t groups, double eps) {
    const ImageCall c(xs);
    const Operand x = c.at(0);
    return c.one(x.expr().graph().group_norm(x, groups, c.maybe(1), c.maybe(2), eps));
  });
  m.def("batch_norm", [](nb::sequence xs, double eps, std::int64_t axis) {
    const ImageCall c(xs);
    return c.one(nn::batch_norm(c.at(0), c.at(1), c.at(2), c.maybe(3), c.maybe(4), eps, axis));
  });
  m.def("batch_norm_training", [](nb::sequence xs, double eps, std::int64_t axis) {
    const ImageCall c(xs);
    const nn::BatchStatistics s = nn::batch_norm_training(c.at(0), c.maybe(1), c.maybe(2), eps, axis);
    return nb::make_tuple(c.one(s.y), c.one(s.mean), c.one(s.var));
  });
  m.def("local_response_norm",
        [](nb::sequence xs, std::int64_t size, double alpha, double beta, double k, std::int64_t axis) {
          const ImageCall c(xs);
          return c.one(nn::local_response_norm(c.at(0), size, alpha, beta, k, axis));
        });
}

}  // namespace rlx::python
