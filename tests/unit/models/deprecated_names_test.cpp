// Names of the last release still work, and the compiler warning gives the new name.
#include <doctest/doctest.h>

#include <memory>
#include <type_traits>

#include "rlx/formats/packed_weight_files.h"
#include "rlx/generation/language_model.h"
#include "rlx/rlx.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

TEST_CASE("names of the last release are the names of this one") {
  static_assert(std::is_same_v<rlx::Form, rlx::PackedLayout>);
  static_assert(std::is_same_v<rlx::Products, rlx::MatmulPrecision>);
  static_assert(std::is_same_v<rlx::FormCache, rlx::PackedWeightCache>);
  static_assert(std::is_same_v<rlx::FormFiles, rlx::PackedWeightFiles>);
  static_assert(std::is_same_v<rlx::PageOptions, rlx::ReportOptions>);
  static_assert(std::is_same_v<rlx::BlockCodes, rlx::BlockValues>);
  static_assert(std::is_same_v<rlx::ops::FormSource, rlx::ops::PackedSource>);
  static_assert(std::is_same_v<rlx::OnDemand<int>, rlx::LazyField<int>>);
  static_assert(rlx::DispatchPath::Driven == rlx::DispatchPath::HostControlled);
  CHECK(products_name(rlx::Products::Int8) == rlx::matmul_precision_name(rlx::MatmulPrecision::Int8));  // found by ADL
  CHECK(rlx::products_named("bf16", "") == rlx::MatmulPrecision::BF16);
  CHECK(rlx::parse_form("panels(48,1);64") == rlx::parse_packed_layout("panels(48,1);64"));
  CHECK(rlx::form_text(rlx::parse_form("panels(48,1);64")) == "panels(48,1);64");
  CHECK(form_text(matrix_form(rlx::parse_form("panels(48,1);64"))) == "panels(48,1);64");
  CHECK(rlx::PrecisionPolicy::with_products(rlx::Products::BF16, rlx::KeepValues::No) ==
        rlx::PrecisionPolicy::with_matmul_precision(rlx::MatmulPrecision::BF16, rlx::KeepValues::No));
}

// A target of the last release, which gives layouts under the old name, and one that gives none.
class OldTarget : public rlx::Target {
 public:
  explicit OldTarget(bool gives) : gives_(gives) {}
  std::string_view name() const override { return "old"; }
  const rlx::OpSet& kinds() const override { return kinds_; }
  const char* refuses(const rlx::Graph&, rlx::NodeId) const override { return "nothing runs here"; }
  std::optional<rlx::PackedLayout> form(const rlx::Graph& g, rlx::NodeId id, int operand,
                                        const rlx::ConstantMatrix& of) const override {
    if (!gives_) return Target::form(g, id, operand, of);
    return of.allowed_loss == rlx::Products::Exact ? std::optional(rlx::parse_packed_layout("panels(48,1);64"))
                                                   : std::nullopt;
  }

 private:
  bool gives_;
  rlx::OpSet kinds_;
};

TEST_CASE("a layout of a target by both names, whichever it overrides") {
  rlx::Graph g("dot");
  const rlx::Expr x = g.input("x", {{4, 64}, rlx::DType::F32}), w = g.param("w", {{64, 96}, rlx::DType::F32});
  const rlx::Expr y = g.dot_general(x, w, {.lhs_contract = {1}, .rhs_contract = {0}});
  g.set_outputs({y});
  rlx::ConstantMatrix of;
  of.k = 64, of.n = 96;
  const auto same = [&](const rlx::Target& t) {
    const auto now = t.packed_layout(g, y.value().node, 1, of), then = t.form(g, y.value().node, 1, of);
    CHECK(now == then);
    return now.has_value();
  };
  CHECK(same(OldTarget(true)));
  CHECK_FALSE(same(OldTarget(false)));
  const auto cpu = rlx::Session(rlx::Device::Cpu).target();
  CHECK(same(*cpu));
  CHECK(same(*rlx::limited_to(cpu, rlx::OpSet::everything())));
  CHECK(same(*rlx::limited_to(std::make_shared<const OldTarget>(true), rlx::OpSet::everything())));
}

TEST_CASE("options by their old names are taken") {
  class Nothing final : public rlx::PackedWeightCache {
    rlx::Tensor find(std::string_view, std::size_t, const rlx::SourceIdentity&,
                     const std::function<std::string()>&) override {
      return {};
    }
    void save(std::string_view, std::span<const std::byte>, const rlx::SourceIdentity&, const std::string&) override {}
  };
  rlx::CompileOptions compile;
  CHECK(compile.weight_cache() == nullptr);
  compile.form_cache = std::make_shared<Nothing>();
  CHECK(compile.weight_cache() == compile.form_cache.value());
  rlx::DecoderOptions decoder;
  decoder.verify_forms = true;
  decoder.forms = "folder";
  decoder.products = rlx::MatmulPrecision::BF16;
  const rlx::DecoderOptions now = decoder.with_new_names();
  CHECK(now.verify_packed_weights);
  CHECK(now.packed_weights == "folder");
  CHECK(now.matmul_precision == rlx::MatmulPrecision::BF16);
  CHECK_FALSE(now.verify_forms.value());
  CHECK_FALSE(now.forms.value());
  CHECK_FALSE(now.products.value());
  CHECK(rlx::DecoderOptions{}.with_new_names().matmul_precision == rlx::MatmulPrecision::Exact);
  rlx::PrecisionPolicy policy;
  CHECK(policy.of_matmuls() == rlx::MatmulPrecision::Exact);
  policy.products = rlx::MatmulPrecision::Int8;
  CHECK(policy.of_matmuls() == rlx::MatmulPrecision::Int8);
  CHECK_THROWS_AS((rlx::WhileOptions{.max_iterations = 3, .max_trips = 5}.with_new_names()), rlx::Error);
  rlx::Graph g("old");
  const auto less = [](rlx::Graph& b, const rlx::ExprList& c) { return b.lt(c[0], 3.0); };
  const auto body = [](rlx::Graph&, const rlx::ExprList& c) { return rlx::LoopStep({c[0] + 1.0}, {c[0]}); };
  const rlx::LoopResult loop =
      g.while_loop(g.input("x", {{}, rlx::DType::F32}), less, body, {.max_trips = 4, .cut_ys = true});
  CHECK(loop.trips.value() == loop.iterations.value());
  CHECK_FALSE(loop.ys[0].shape().is_static());
  const auto [carries, ys, trips] = loop;
  CHECK(trips.value() == loop.iterations.value());
  CHECK(ys.size() == 1);
}
