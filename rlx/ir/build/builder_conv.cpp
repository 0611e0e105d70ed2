// Builder functions of convolutions.
#include <algorithm>

#include "rlx/ir/build/building.h"
#include "rlx/ir/build/building_conv.h"
#include "rlx/ir/builder.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/ops/shape.h"

namespace rlx {

namespace building {

std::vector<std::int64_t> for_each_axis(SourceLoc loc, std::string_view what, std::string_view name,
                                        const std::vector<std::int64_t>& list, int space, std::int64_t least) {
  if (list.size() != 1 && list.size() != static_cast<std::size_t>(space))
    fail(loc, ErrorCode::InvalidArgument,
         concat_text(what, ": ", name, " has ", list.size(), " entries for ", space, " spatial axes"),
         "give one for each axis, or one for all");
  constexpr std::int64_t kMost = std::int64_t{1} << 31;  // the limit of ops::Conv; products of two fit 64 bits
  for (std::int64_t amount : list) {
    if (amount < least)
      fail(loc, ErrorCode::InvalidArgument,
           concat_text(what, ": ", name, " holds ", amount, ", which is below ", least));
    if (amount > kMost)
      fail(loc, ErrorCode::InvalidArgument,
           concat_text(what, ": ", name, " holds ", amount, ", which is above ", kMost));
  }
  return list.size() == 1 ? std::vector<std::int64_t>(static_cast<std::size_t>(space), list[0]) : list;
}

void require_conv_ranks(SourceLoc loc, std::string_view what, const Expr& x, const Expr& w, int space) {
  if (x.rank() == space + 2 && w.rank() == space + 2) return;
  fail(loc, ErrorCode::ShapeMismatch,
       concat_text(what, ": x and w must have ", space + 2, " axes, got x ", x.shape(), " and w ", w.shape()));
}

Expr transposed_conv(Graph& g, std::string_view what, Expr x, Expr w, const ConvArguments& a, SourceLoc loc) {
  const int space = x.rank() - 2;
  if (a.groups < 1)
    fail(loc, ErrorCode::InvalidArgument, concat_text(what, ": groups must be at least 1, got ", a.groups));
  ops::Conv op;
  op.lhs_dilation = a.strides;
  op.rhs_dilation = a.dilation;
  op.groups = a.groups;
  std::vector<std::int64_t> turned;
  for (int i = 0; i < space; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Dim& window = w.dim(i + 2);
    if (!window.is_static())
      fail(loc, ErrorCode::Unsupported, concat_text(what, ": the window must have known extents, w is ", w.shape()),
           "bind the symbol first");
    const std::int64_t more = a.output_padding[at], reach = a.dilation[at] * (window.value() - 1);
    if (more >= std::max(a.strides[at], a.dilation[at]))
      fail(loc, ErrorCode::InvalidArgument,
           concat_text(what, ": output_padding ", more, " must be less than the stride ", a.strides[at],
                       " or the dilation ", a.dilation[at]));
    op.low.push_back(reach - a.low[at]);
    op.high.push_back(reach - a.high[at] + more);
    turned.push_back(i + 2);
  }
  // The results of a group depend on the features of the group: C is split into (groups, C / groups), and the groups
  // move to the filters.
  w = g.add(ops::Reverse{turned}, {w}, loc);
  if (a.groups > 1) {
    const std::optional<Dim> part = exact_div(w.dim(0), Dim(a.groups));
    if (!part)
      fail(loc, ErrorCode::ShapeMismatch,
           concat_text(what, ": w ", w.shape(), " has ", w.dim(0), " features, which cannot be divided into ", a.groups,
                       " groups"));
    const At at{loc};
    Dims dims = w.shape().dims();
    dims[0] = *part;
    dims.insert(dims.begin(), Dim(a.groups));
    std::vector<std::int64_t> perm{1, 0};
    for (int i = 2; i < static_cast<int>(dims.size()); ++i) perm.push_back(i);
    w = g.transpose(at(g.reshape(at(w), dims)), perm);
    dims = w.shape().dims();
    dims[1] = dims[1] * dims[2];
    dims.erase(dims.begin() + 2);
    w = g.reshape(at(w), dims);
  }
  op.rhs_spec = {1, 0};
  for (int i = 0; i < space; ++i) op.rhs_spec.push_back(i + 2);
  return g.conv(At{loc}(x), At{loc}(w), std::move(op));
}

}  // namespace building

using namespace building;

Expr Builder::conv(Operand x, Operand w, ops::Conv op, const DeclaredShape& shape) {
  const SourceLoc loc = x.loc();
  Expr a = own(graph(), x), b = own(graph(), w);
  if (!op.out) {
    const DType t = promoted(a.dtype(), b.dtype(), "conv", loc);
    a = cast_at(graph(), a, t, loc);
    b = cast_at(graph(), b, t, loc);
  }
  for (auto* spec : {&op.lhs_spec, &op.rhs_spec, &op.out_spec})
    for (auto& axis : *spec) axis = normalize_axis_at(loc, axis, a.rank(), "conv");
  return shape.check(graph().add(std::move(op), {a, b}, loc));
}

namespace {

ConvArguments conv_arguments(SourceLoc loc, const char* what, const Builder::ConvOptions& o, int space) {
  ConvArguments a;
  a.strides = for_each_axis(loc, what, "strides", o.strides, space, 1);
  a.low = a.high = for_each_axis(loc, what, "padding", o.padding, space, 0);
  a.dilation = for_each_axis(loc, what, "dilation", o.dilation, space, 1);
  a.output_padding = for_each_axis(loc, what, "output_padding", o.output_padding, space, 0);
  a.groups = o.groups;
  return a;
}

}  // namespace

Expr Builder::conv2d(Operand x, Operand w) { return conv2d(x, w, ConvOptions{}); }

Expr Builder::conv2d(Operand x, Operand w, const ConvOptions& options) {
  const SourceLoc loc = x.loc();
  const Expr a = own(graph(), x), b = own(graph(), w);
  require_conv_ranks(loc, "conv2d", a, b, 2);
  const ConvArguments args = conv_arguments(loc, "conv2d", options, 2);
  for (std::int64_t more : args.output_padding)
    if (more != 0) fail(loc, ErrorCode::InvalidArgument, "conv2d: output_padding is only for conv_transpose2d");
  ops::Conv op;
  op.strides = args.strides, op.low = args.low, op.high = args.high, op.rhs_dilation = args.dilation;
  op.groups = args.groups;
  return conv(At{loc}(a), At{loc}(b), std::move(op));
}

Expr Builder::conv_transpose2d(Operand x, Operand w, const ConvOptions& options) {
  const SourceLoc loc = x.loc();
  const Expr a = own(graph(), x), b = own(graph(), w);
  require_conv_ranks(loc, "conv_transpose2d", a, b, 2);
  return transposed_conv(graph(), "conv_transpose2d", a, b, conv_arguments(loc, "conv_transpose2d", options, 2), loc);
}

}  // namespace rlx
