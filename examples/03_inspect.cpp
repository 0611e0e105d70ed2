// Inspecting a compile: the graph after every stage, fusions, missed fusions with their reasons, and the memory plan.
#include <rlx/rlx.h>

#include <cstdio>

int main() {
  rlx::Graph g("ffn");
  auto x = g.input("x", {{4, 64}, rlx::DType::F32});
  auto up = g.linear(x, g.param("up", {{64, 256}, rlx::DType::F32}), g.param("up_bias", {{256}, rlx::DType::F32}),
                     rlx::ActivationKind::Gelu);
  auto down =
      g.linear(up, g.param("down", {{256, 64}, rlx::DType::F32}), g.param("down_bias", {{64}, rlx::DType::F32}));
  g.set_outputs({g.residual_layer_norm(down, x, g.param("gamma", {{64}, rlx::DType::F32}),
                                       g.param("beta", {{64}, rlx::DType::F32}))});

  const std::shared_ptr<const rlx::Target> target = rlx::Session().target();
  rlx::PipelineInspect stages = rlx::inspect_pipeline(rlx::make_module(std::move(g)), target);
  std::fputs(stages.text().c_str(), stdout);
}
