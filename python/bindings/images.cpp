// Binds image functions of rlx/functions: pooling, resizing, normalization.
#include "python/bindings/call_operands.h"
#include "python/bindings/common.h"
#include "rlx/functions/image.h"
#include "rlx/functions/norms.h"
#include "rlx/functions/pool.h"
#include "rlx/ir/builder.h"
#include "rlx/ir/ops/conv.h"

namespace rlx::python {
namespace {

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
          const CallOperands c(xs);
          if (fn == "lp") return c.one(nn::lp_pool(c[0], p, o));
          if (fn == "max_with_indices") {
            const nn::IndexedPool both = nn::max_pool_with_indices(c[0], o);
            return c.two(both.values, both.indices);
          }
          return c.one(nn::pool(named<ReduceKind>(fn, "pool"), c[0], o));
        });
  m.def("max_unpool", [](nb::sequence xs, nb::handle space) {
    const Dims dims = dims_from(space);
    const CallOperands c(xs);
    return c.one(nn::max_unpool(c[0], c[1], dims));
  });
  m.def("adaptive_pool", [](nb::sequence xs, bool max, const Ints& sizes, bool channels_last) {
    const CallOperands c(xs);
    return c.one(max ? nn::adaptive_max_pool(c[0], sizes, channels_last)
                     : nn::adaptive_avg_pool(c[0], sizes, channels_last));
  });
  m.def("resize", [](nb::sequence xs, const Ints& axes, const Ints& sizes, const std::string& kind,
                     const std::string& places, const std::string& rounding, bool antialias, bool renormalize,
                     double cubic_a, const std::vector<double>& scales) {
    nn::ResizeOptions o;
    o.kind = named<ResizeKind>(kind, "resize: kind");
    o.places = named<ResizePlaces>(places, "resize: places");
    o.rounding = named<ResizeRounding>(rounding, "resize: rounding");
    o.antialias = antialias, o.renormalize = renormalize, o.cubic_a = cubic_a, o.scales = scales;
    const CallOperands c(xs);
    return c.one(nn::resize(c[0], axes, sizes, o));
  });
  m.def("group_norm", [](nb::sequence xs, std::int64_t groups, double eps) {
    const CallOperands c(xs);
    const Operand x = c[0];
    return c.one(x.expr().graph().group_norm(x, groups, c.maybe(1), c.maybe(2), eps));
  });
  m.def("batch_norm", [](nb::sequence xs, double eps, std::int64_t axis) {
    const CallOperands c(xs);
    return c.one(nn::batch_norm(c[0], c[1], c[2], c.maybe(3), c.maybe(4), eps, axis));
  });
  m.def("batch_norm_training", [](nb::sequence xs, double eps, std::int64_t axis) {
    const CallOperands c(xs);
    const nn::BatchStatistics s = nn::batch_norm_training(c[0], c.maybe(1), c.maybe(2), eps, axis);
    return nb::make_tuple(c.one(s.y), c.one(s.mean), c.one(s.var));
  });
  m.def("local_response_norm",
        [](nb::sequence xs, std::int64_t size, double alpha, double beta, double k, std::int64_t axis) {
          const CallOperands c(xs);
          return c.one(nn::local_response_norm(c[0], size, alpha, beta, k, axis));
        });
}

}  // namespace rlx::python
