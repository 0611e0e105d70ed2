// States, which keep their values between runs: a cache of rows that two programs append to in place.
#include <rlx/rlx.h>

#include <cstdio>

// The program: cache[at, :] = row. Its output is the mean of the rows written so far.
rlx::Graph append(const char* name) {
  rlx::Graph g(name);
  auto row = g.input("row", {{1, 2}, rlx::DType::F32});
  auto at = g.input("at", {{2}, rlx::DType::I32});  // {row index, 0}
  auto count = g.input("count", {{1}, rlx::DType::F32});
  auto cache = g.dynamic_update_slice(g.state("cache", rlx::Tensor::zeros({{4, 2}, rlx::DType::F32})), row, at);
  g.set_state("cache", cache);
  g.set_outputs({g.sum(cache, {0}) / count});
  return g;
}

rlx::NamedTensors step(std::int32_t i, float a, float b) {
  return {{"row", rlx::Tensor::of<float>({1, 2}, std::vector<float>{a, b})},
          {"at", rlx::Tensor::of<std::int32_t>({2}, std::vector<std::int32_t>{i, 0})},
          {"count", rlx::Tensor::of<float>({1}, std::vector<float>{static_cast<float>(i + 1)})}};
}

int main() {
  rlx::CompileOptions in_place;
  in_place.must_alias = true;  // an update that needs a copy of the cache is an error
  auto first = rlx::Session().compile_with(append("first"), in_place);
  auto second = rlx::Session().compile_with(append("second"), in_place);
  second.share_state_from(first);  // both programs use one cache

  auto show = [](const char* who, const std::vector<rlx::Tensor>& out) {
    std::printf("%s: %g %g\n", who, out[0].at(0), out[0].at(1));
  };
  show("first", first.run_typed(step(0, 2, 4)));
  show("second", second.run_typed(step(1, 4, 8)));
  auto branch = first.clone();  // a copy with its own cache
  show("branch", branch.run_typed(step(2, 60, 60)));
  show("first", first.run_typed(step(2, 0, 0)));
  std::printf("cache row 2: %g in first, %g in branch\n", first.read_state("cache").at(4),
              branch.read_state("cache").at(4));
}
