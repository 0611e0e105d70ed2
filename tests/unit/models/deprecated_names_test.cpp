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
  CHECK((&rlx::products_name == &rlx::matmul_precision_name));
  CHECK((&rlx::products_named == &rlx::matmul_precision_named));
  CHECK(rlx::parse_form("panels(48,1);64") == rlx::parse_packed_layout("panels(48,1);64"));
  CHECK(rlx::form_text(rlx::parse_form("panels(48,1);64")) == "panels(48,1);64");
  CHECK((&rlx::form_of == &rlx::packed_layout_of));
  CHECK((&rlx::matrix_form == &rlx::layout_of_one_matrix));
  CHECK(rlx::PrecisionPolicy::with_products(rlx::Products::BF16) ==
        rlx::PrecisionPolicy::with_matmul_precision(rlx::MatmulPrecision::BF16));
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
  rlx::Graph g("old");
  const auto less = [](rlx::Graph& b, const rlx::ExprList& c) { return b.lt(c[0], 3.0); };
  const auto body = [](rlx::Graph&, const rlx::ExprList& c) { return rlx::LoopStep({c[0] + 1.0}, {c[0]}); };
  const rlx::LoopResult loop =
      g.while_loop(g.input("x", {{}, rlx::DType::F32}), less, body, {.max_trips = 4, .cut_ys = true});
  CHECK(loop.trips.value() == loop.iterations.value());
  CHECK_FALSE(loop.ys[0].shape().is_static());
}
