// Misuse of a compiled graph: every error names the mistake and the closest valid name, in clones too, and the program
// stays usable.
#include <doctest/doctest.h>

#include <functional>
#include <memory>

#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

using test::f32;

Graph lookup() {
  Graph g("lookup");
  Expr ids = g.input("ids", {{2}, DType::I32}), x = g.input("tokens", f32({2, 3}));
  Expr seen = g.state("seen", Tensor::zeros(f32({2, 3})));
  g.set_state("seen", seen + x);
  const Expr weight = g.param("weight", f32({3, 4})), table = g.param("table", f32({5, 3}));
  g.set_outputs({g.matmul(g.gather(table, ids) + x, weight), ids + 1});
  return g;
}

class OneTensor final : public WeightLoader {
 public:
  OneTensor(std::string name, Tensor t) : name_(std::move(name)), tensor_(std::move(t)), dims_(tensor_.dims()) {}
  std::vector<std::string> names() const override { return {name_}; }
  std::optional<TensorView> find(std::string_view name) const override {
    if (name != name_) return std::nullopt;
    return TensorView{tensor_.data(), tensor_.dtype(), dims_, tensor_.size_bytes()};
  }

 private:
  std::string name_;
  Tensor tensor_;
  std::vector<std::int64_t> dims_;
};

std::shared_ptr<const WeightLoader> file(std::string name, Shape shape) {
  return std::make_shared<OneTensor>(std::move(name), Tensor::zeros(shape));
}

struct Case {
  const char* message;  // a part of the message
  std::function<void(CompiledGraph&)> call;
};

const std::vector<float> kOnes(64, 1.0F);
const std::int32_t kIds[] = {1, 2};
std::span<const float> view_of_ones(std::size_t n) { return {kOnes.data(), n}; }
TensorView ids_view() { return {kIds, DType::I32, {}, 8}; }
TensorView x_view() { return {kOnes.data(), DType::F32, {}, 24}; }

std::vector<Case> cases() {
  using C = CompiledGraph;
  static std::vector<float> room(8);
  static std::vector<std::int32_t> id_room(2);
  static const auto rooms = [] {
    return std::vector<MutableTensorView>{{room.data(), DType::F32, {}, 32}, {id_room.data(), DType::I32, {}, 8}};
  };
  const auto run_into = [](std::function<void(std::vector<TensorView>&, std::vector<MutableTensorView>&)> spoil) {
    return [spoil](C& f) {
      std::vector<TensorView> in{ids_view(), x_view()};
      std::vector<MutableTensorView> out = rooms();
      spoil(in, out);
      f.run_into(in, out);
    };
  };
  const auto run_slots = [](std::function<void(std::vector<TensorView>&)> spoil) {
    return [spoil](C& f) {
      std::vector<TensorView> in{ids_view(), x_view()};
      spoil(in);
      f.run_slots(in);
    };
  };
  const Tensor ids = Tensor::of<std::int32_t>({2}, std::vector<std::int32_t>{1, 2}), x = Tensor::zeros(f32({2, 3}));
  return {
      // weights
      {"did you mean 'weight'?", [](C& f) { f.set_param("wieght", view_of_ones(12)); }},
      {"param 'weight' is [3, 4] f32 (12 values), got 11", [](C& f) { f.set_param("weight", view_of_ones(11)); }},
      {"did you mean 'table'?", [](C& f) { f.set_param_typed("tabel", kOnes.data(), 60, DType::F32); }},
      {"param 'table' is [5, 3] f32, got i32 values",
       [](C& f) { f.set_param_typed("table", kOnes.data(), 60, DType::I32); }},
      {"(15 values), got 30", [](C& f) { f.set_param_typed("table", kOnes.data(), 60, DType::F16); }},
      {"did you mean 'table'?",
       [](C& f) {
         f.set_param("tables", Tensor::zeros(f32({5, 3})));
       }},
      {"param 'table' is [5, 3] f32, got [3, 5] f32",
       [](C& f) {
         f.set_param("table", Tensor::zeros(f32({3, 5})));
       }},
      {"param 'table' is [5, 3] f32, got [5, 3] i64",
       [](C& f) {
         f.set_param("table", Tensor::zeros({{5, 3}, DType::I64}));
       }},
      {"has no param 'seen': it is a state", [](C& f) { f.set_param("seen", view_of_ones(6)); }},
      {"has no param 'seen': it is a state",
       [](C& f) {
         f.load_params(file("seen", f32({2, 3})));
       }},
      {"has no param 'tabel'",
       [](C& f) {
         f.load_params(file("tabel", f32({5, 3})));
       }},
      {"did you mean 'wieght'?",
       [](C&) {
         Session().compile(lookup()).load_params(file("wieght", f32({3, 4})), LoadMode::Subset);
       }},
      {"the weights have no tensor 'weight'",
       [](C& f) {
         f.load_params(file("table", f32({5, 3})));
       }},
      {"tensor 'table' is [5, 4] f32 in the file, but the graph needs [5, 3] f32",
       [](C& f) {
         f.load_params(file("table", f32({5, 4})), LoadMode::Subset);
       }},
      {"tensor 'table' is i8 in the file",
       [](C& f) {
         f.load_params(file("table", {{5, 3}, DType::I8}), LoadMode::Subset);
       }},
      // sticky inputs and handles
      {"did you mean 'tokens'?", [](C& f) { f.set_input("token", view_of_ones(6)); }},
      {"input 'tokens' is [2, 3] f32, got 5 values", [](C& f) { f.set_input("tokens", view_of_ones(5)); }},
      {"input 'tokens' is [2, 3] f32, got [3, 2]",
       [](C& f) {
         f.set_input("tokens", Tensor::zeros(f32({3, 2})));
       }},
      {"input 'ids' is [2] i32, got f32 values", [](C& f) { f.set_input("ids", view_of_ones(2)); }},
      {"input 'ids' is [2] i32, got i64 values", [](C& f) { f.set_input_typed("ids", kOnes.data(), 16, DType::I64); }},
      {"no input or output 'out3'", [](C& f) { f.bind_handle("out3", view_of_ones(2)); }},
      {"has no handle 'tokens'", [](C& f) { f.read_handle("tokens"); }},
      // runs by name
      {"did you mean 'tokens'?",
       [ids](C& f) {
         f.set_input("ids", ids);
         f.run({{"tokns", {1, 2, 3, 4, 5, 6}}});
       }},
      {"input 'ids' is [2] i32, got f32 values",
       [](C& f) {
         f.run({{"ids", {1, 2}}});
       }},
      {"input 'tokens' [2, 3] f32 was not given",
       [ids](C& f) {
         f.run_typed({{"ids", ids}});
       }},
      {"input 'tokens' is [2, 3] f32, got [2] i32",
       [ids](C& f) {
         f.run_typed({{"tokens", ids}});
       }},
      {"input 'tokens' is [2, 3] f32, got f64 values",
       [ids, x](C& f) {
         f.run_typed({{"ids", ids}, {"tokens", x.cast(DType::F64)}});
       }},
      {"did you mean 'ids'?",
       [ids](C& f) {
         f.run_typed({{"idx", ids}});
       }},
      {"output 'out1' is [2] i32, but run returns f32",
       [ids](C& f) {
         f.set_input("ids", ids);
         f.run({{"tokens", {1, 2, 3, 4, 5, 6}}});
       }},
      {"pass 6 values",
       [ids](C& f) {
         f.set_input("ids", ids);
         f.run_raw({{"tokens", {1, 2}}});
       }},
      {"did you mean 'tokens'?",
       [x](C& f) {
         f.run_raw(NamedTensors{{"token", x}});
       }},
      {"was not given",
       [x](C& f) {
         f.commit_no_wait(NamedTensors{{"tokens", x}});
         f.commit_no_wait(NamedTensors{{"ids", x}});
       }},
      {"did you mean 'tokens'?",
       [](C& f) {
         f.run_pipelined({{{"token", {1, 2, 3, 4, 5, 6}}}});
       }},
      // runs by position
      {"takes 2 inputs, got 1: 'tokens' is missing", run_into([](auto& in, auto&) { in.pop_back(); })},
      {"takes 2 inputs, got 3", run_into([](auto& in, auto&) { in.push_back(in[0]); })},
      {"input 'ids' is [2] i32, got f32 values", run_into([](auto& in, auto&) { std::swap(in[0], in[1]); })},
      {"input 'tokens' is [2, 3] f32 (24 bytes), got 20 bytes",
       run_into([](auto& in, auto&) { in[1].size_bytes = 20; })},
      {"input 'tokens' has no data", run_into([](auto& in, auto&) { in[1].data = nullptr; })},
      {"has 2 outputs, got views for 1", run_into([](auto&, auto& out) { out.pop_back(); })},
      {"output 'out1' is [2] i32, the view is f32", run_into([](auto&, auto& out) { out[1].dtype = DType::F32; })},
      {"output 'out0' is [2, 4] f32 (32 bytes), the view has 16 bytes",
       run_into([](auto&, auto& out) { out[0].size_bytes = 16; })},
      {"output 'out0' has no memory", run_into([](auto&, auto& out) { out[0].data = nullptr; })},
      {"'tokens' is missing", run_slots([](auto& in) { in.pop_back(); })},
      {"input 'tokens' is [2, 3] f32, got f64 values", run_slots([](auto& in) { in[1].dtype = DType::F64; })},
      {"(24 bytes), got 28 bytes", run_slots([](auto& in) { in[1].size_bytes = 28; })},
      {"has no data", run_slots([](auto& in) { in[0].data = nullptr; })},
      {"takes 2 inputs, got dimensions for 1",
       [](C& f) { f.prepare_shape(std::vector<std::vector<std::int64_t>>{{2}}); }},
      {"'tokens'",
       [](C& f) {
         f.prepare_shape(std::vector<std::vector<std::int64_t>>{{2}, {2, 4}});
       }},
      {"'tokens' is missing",
       [](C& f) {
         const TensorView in = ids_view();
         f.profile({&in, 1});
       }},
      // states and outputs
      {"did you mean 'seen'?", [](C& f) { f.read_state("sen"); }},
      {"did you mean 'seen'?", [x](C& f) { f.write_state("seem", x); }},
      {"state 'seen' is [2, 3] f32, got [3] f32", [](C& f) { f.write_state("seen", Tensor::zeros(f32({3}))); }},
      {"has no output 'out9'", [](C& f) { f.output_index("out9"); }},
  };
}

}  // namespace

TEST_CASE("wrong names, lengths, dtypes and missing values: every entry says which and what is near, clones too") {
  const std::vector<Case> all = cases();
  for (const bool cloned : {false, true}) {
    CAPTURE(cloned);
    for (const Case& c : all) {
      CAPTURE(c.message);
      CompiledGraph f = Session().compile(lookup());
      f.set_param("table", view_of_ones(15));
      f.set_param("weight", view_of_ones(12));
      CompiledGraph g = f.clone();
      CompiledGraph& used = cloned ? g : f;
      const std::string text = test::error_text([&] { c.call(used); });
      CHECK_MESSAGE(test::contains(text, c.message), "the message is: ", text);
      // Refused calls changed nothing: the program runs as before.
      const Tensor out =
          used.run_typed({{"ids", Tensor::zeros({{2}, DType::I32})}, {"tokens", Tensor::zeros(f32({2, 3}))}})[0];
      CHECK(out.to_f32() == std::vector<float>(8, 3.0F));
    }
  }
}

TEST_CASE("values without dimensions are refused for two unknown ones, whatever shape has run before") {
  Graph g("grid");
  const Dim n = g.symbol("n", {.min = 1, .max = 64, .divisor = 1}),
            m = g.symbol("m", {.min = 1, .max = 64, .divisor = 1});
  g.set_outputs({g.sum(g.input("x", f32({n, m})), {1})});
  CompiledGraph f = Session().compile(std::move(g));
  const std::int64_t dims[] = {4, 8};
  const TensorView with{kOnes.data(), DType::F32, dims, 128}, without{kOnes.data(), DType::F32, {}, 128};
  const char* const message = "input 'x' [n, m] f32 has more than one unknown dimension";
  CHECK(test::contains(test::error_text([&] { f.run({{"x", std::vector<float>(32)}}); }), message));
  CHECK(f.run_slots({{with}}).size() == 1);
  CHECK(test::contains(test::error_text([&] { f.run({{"x", std::vector<float>(32)}}); }), message));
  CHECK(test::contains(test::error_text([&] { f.run_slots({{without}}); }), message));
  CHECK(f.run_slots({{with}}).size() == 1);
}

TEST_CASE("weights that are missing are named by every run, in a clone too") {
  CompiledGraph f = Session().compile(lookup());
  f.set_param("table", view_of_ones(15));
  CompiledGraph c = f.clone();
  const Tensor ids = Tensor::zeros({{2}, DType::I32}), x = Tensor::zeros(f32({2, 3}));
  for (CompiledGraph* h : {&f, &c}) {
    CHECK(h->unset_params() == std::vector<std::string>{"weight"});
    const std::string text = "1 param has no value: 'weight'";
    CHECK(test::contains(test::error_text([&] { h->finalize(); }), text));
    CHECK(test::contains(test::error_text([&] { h->run_typed({{"ids", ids}, {"tokens", x}}); }), text));
    CHECK(test::contains(test::error_text([&] { h->run_raw(NamedTensors{{"ids", ids}, {"tokens", x}}); }), text));
    const TensorView in[] = {ids_view(), x_view()};
    CHECK(test::contains(test::error_text([&] { h->run_slots(in); }), text));
    std::vector<float> room(8);
    std::vector<std::int32_t> id_room(2);
    const MutableTensorView out[] = {{room.data(), DType::F32, {}, 32}, {id_room.data(), DType::I32, {}, 8}};
    CHECK(test::contains(test::error_text([&] { h->run_into(in, out); }), text));
    CHECK(test::contains(test::error_text([&] { h->profile(in); }), text));
  }
  c.set_param("weight", view_of_ones(12));  // of the clone only
  CHECK(c.run_typed({{"ids", ids}, {"tokens", x}})[0].to_f32() == std::vector<float>(8, 3.0F));
  CHECK(f.unset_params() == std::vector<std::string>{"weight"});
  Graph symbolic("symbolic");
  Dim n = symbolic.symbol("n", {.min = 1, .max = 4, .divisor = 1});
  symbolic.set_outputs({symbolic.matmul(symbolic.input("x", f32({n, 3})), symbolic.param("weight", f32({3, 4})))});
  CompiledGraph s = Session().compile(std::move(symbolic));
  CHECK(test::contains(test::error_text([&] { s.finalize(); }), "1 param has no value: 'weight'"));
}

TEST_CASE("errors: a name in the other case is near, and where none is near the names there are are told") {
  Graph g("named");
  const Expr x = g.input("input_ids", {{2}, DType::F32}), w = g.param("Weight", {{2}, DType::F32});
  g.set_outputs({x * w});
  CompiledGraph f = Session().compile(std::move(g));
  const auto tells = [](const std::function<void()>& call, const char* part) {
    return test::contains(test::error_text(call), part);
  };
  CHECK(tells([&] { f.set_param("weight", std::vector<float>{1, 2}); }, "did you mean 'Weight'?"));
  CHECK(tells([&] { (void)f.run({{"q", std::vector<float>{1, 2}}}); }, "there is 'input_ids'"));
}

TEST_CASE("errors: control characters of names are escaped, so that no file writes on the terminal or ends a message") {
  const std::string name("a\x1b[31m\0\x7f\r\xc2\x9b\xc3\xa9", 13),
      shown = "a\\x1b[31m\\x00\\x7f\\x0d\\xc2\\x9b\xc3\xa9";
  const Error e(Diagnostic{ErrorCode::BadFile, "the tensor '" + name + "'", "at\t" + name + "\n  next", name});
  CHECK(e.diagnostic().message == "the tensor '" + shown + "'");
  CHECK(e.diagnostic().where == "at\t" + shown + "\n  next");
  CHECK(e.diagnostic().hint == shown);
  CHECK(std::string(e.what()) == e.diagnostic().text());
}

}  // namespace rlx
