// Shape rules get attributes and operand shapes from parsers. For any input a rule must return shapes or an error, and
// accepted input can be decomposed. Under the sanitizers this test also finds overflows and out-of-range reads.
#include <doctest/doctest.h>

#include <limits>
#include <random>

#include "rlx/ir/op_def.h"
#include "tests/support/custom_ops.h"

using namespace rlx;

namespace {

class Hostile {
 public:
  std::int64_t integer() {
    constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min(),
                           kHigh = std::numeric_limits<std::int64_t>::max();
    constexpr std::int64_t values[] = {0,        1,         -1,        2,         3,           -2,
                                       4,        7,         1000,      kHigh,     kLow,        kHigh - 1,
                                       kLow + 1, 1LL << 31, 1LL << 32, 1LL << 62, -(1LL << 62)};
    return values[pick(std::size(values))];
  }
  double real() {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    constexpr double values[] = {0,    -0.0, 1, -1, 1e300, -1e300, 5e-324, std::numeric_limits<double>::quiet_NaN(),
                                 kInf, -kInf};
    return values[pick(std::size(values))];
  }
  Dim attribute_dim() {
    switch (pick(6)) {
      case 0: return Dim::symbol("n");
      case 1: return Dim::symbol("m") + 1;
      case 2: return Dim::symbol("n") * Dim(integer());
      default: return Dim(integer());
    }
  }
  // No operand has a negative dimension, as its producer would be refused.
  Dim operand_dim() {
    const Dim n = Dim::symbol("n"), values[] = {0, 1, 2, 3, 4, n, Dim::symbol("m") + 1, n * 2, n * Dim::symbol("m")};
    return values[pick(std::size(values))];
  }
  AttrValue attribute(const AttrField& f, const AttrValue& given) {
    switch (f.type) {
      case AttrType::Bool: return pick(2) == 1;
      case AttrType::I64: return integer();
      case AttrType::F64: return real();
      case AttrType::Enum: return static_cast<std::int64_t>(pick(f.enum_names.size() + 2)) - 1;
      case AttrType::DType: return static_cast<DType>(pick(kNumDTypes));
      case AttrType::Body:
      case AttrType::OptBody: return body(std::get<Subgraph>(given));
      case AttrType::OptF64: return pick(2) ? AttrValue(real()) : AttrValue();
      case AttrType::OptI64: return pick(2) ? AttrValue(integer()) : AttrValue();
      case AttrType::OptDType: return pick(2) ? AttrValue(static_cast<DType>(pick(kNumDTypes))) : AttrValue();
      case AttrType::OptEnum:
        return pick(2) ? AttrValue(static_cast<std::int64_t>(pick(f.enum_names.size()))) : AttrValue();
      case AttrType::Operands: return static_cast<std::int64_t>(pick(16));
      case AttrType::I64List: {
        std::vector<std::int64_t> list(pick(5));
        for (auto& x : list) x = pick(2) ? static_cast<std::int64_t>(pick(5)) - 1 : integer();
        return list;
      }
      case AttrType::DimList: {
        Dims list(pick(5));
        for (auto& x : list) x = attribute_dim();
        return list;
      }
      default: return given;
    }
  }
  // Valid graphs that are not a body of this op or have other shapes, dtypes or arity; or none at all.
  Subgraph body(const Subgraph& given) {
    const std::size_t fault = pick(10);
    if (fault == 0 || !given) return nullptr;
    auto out = std::make_shared<Graph>("hostile");
    try {
      std::vector<Value> now(given->num_nodes());
      for (std::uint32_t i = 0; i < given->num_nodes(); ++i) {
        const Node& n = given->nodes()[i];
        if (n.kind() == OpKind::Input) {
          Dims dims = n.shape().dims();
          DType dtype = n.shape().dtype();
          if (fault == 1) dtype = static_cast<DType>(pick(kNumDTypes));
          if (fault == 2) dims.resize(pick(5), Dim(1));
          if (fault == 3 && !dims.empty()) dims[pick(dims.size())] = operand_dim();
          if (fault == 4 && !dims.empty()) dims[pick(dims.size())] = Dim(std::int64_t{1} << (20 + pick(42)));
          const Shape shape(std::move(dims), dtype);
          if (fault == 5)
            now[i] = out->param(concat_text("p", i), shape);
          else if (fault == 6 && shape.is_static())
            now[i] = out->state(concat_text("s", i), Tensor::zeros(shape));
          else
            now[i] = out->input(concat_text("x", i), shape);
          continue;
        }
        std::vector<Value> operands;
        for (Value v : n.inputs) operands.push_back(Value(now[v.node.index].node, v.result));
        now[i] = out->add(n.op, std::move(operands));
      }
      std::vector<Value> outputs;
      for (Value v : given->outputs()) outputs.push_back(Value(now[v.node.index].node, v.result));
      if (fault == 7) outputs.clear();
      if (fault == 8) outputs.insert(outputs.end(), 1 + pick(3), Value(NodeId{0}));
      if (fault == 9) (void)out->input("more", Shape({attribute_dim()}, DType::F32));
      out->set_outputs(std::move(outputs));
    } catch (const Error&) {  // the builder refused it
      return given;
    }
    return out;
  }
  std::size_t pick(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

 private:
  std::mt19937_64 random_{7};
};

}  // namespace

TEST_CASE("shape rules survive hostile attributes and operands") {
  Hostile hostile;
  int refused = 0, accepted = 0;
  for (const OpDef* def : test::ops_under_test()) {
    for (const testing::Sample& sample : testing::op_samples(*def)) {
      for (int round = 0; round < 40; ++round) {
        auto op = make_default_op(def->kind);
        for (const AttrField& f : def->attrs) {
          const AttrValue given = f.get(sample.op.data());
          try {
            f.set(op.get(), hostile.pick(2) ? hostile.attribute(f, given) : given);
          } catch (const Error&) {  // a dimension beyond 64 bits
            f.set(op.get(), given);
          }
        }
        std::vector<Shape> operands;
        for (const testing::SampleInput& in : sample.inputs) operands.push_back(in.shape);
        if (hostile.pick(2)) {
          for (Shape& x : operands) {
            Dims dims = x.dims();
            if (hostile.pick(4) == 0) dims.resize(hostile.pick(5), Dim(2));
            for (Dim& d : dims)
              if (hostile.pick(4) == 0) d = hostile.operand_dim();
            x = Shape(dims, hostile.pick(4) ? x.dtype() : static_cast<DType>(hostile.pick(kNumDTypes)));
          }
        }
        if (hostile.pick(8) == 0 && !operands.empty()) operands.pop_back();
        if (hostile.pick(8) == 0) operands.push_back(Shape({2, 2}, DType::F32));
        const OpBox box(def->kind, std::shared_ptr<const void>(op));
        auto shapes = infer_shapes(box, operands);
        ++(shapes.ok() ? accepted : refused);
        if (!shapes.ok()) {
          REQUIRE_FALSE(shapes.error().message.empty());
          REQUIRE_MESSAGE(shapes.error().code != ErrorCode::Internal, shapes.error().text());
        } else if (def->decompose.has()) {
          Graph g;
          std::vector<Expr> in;
          for (const Shape& x : operands) in.push_back(g.input(concat_text("in", in.size()), x));
          std::string message;
          try {
            (void)decompose_into(g, box, in);
          } catch (const Error& e) {
            message = e.what();
          }
          REQUIRE_MESSAGE(message.empty(), def->name, "/", sample.name, ": ", message);
        }
      }
    }
  }
  CHECK(refused > 1000);
  CHECK(accepted > 1000);
}
