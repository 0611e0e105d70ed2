// LoRA adapters (Hu et al. 2021, arXiv:2106.09685): low-rank changes of a model's matrices.
#pragma once

#include <string>
#include <vector>

namespace rlx {

/// A PEFT folder: adapter_config.json, adapter_model.safetensors. Its change of the model is multiplied by `scale`.
struct AdapterPart {
  std::string path;
  double scale = 1;
};

/// An adapter that requests select by name. The changes of its parts are added.
struct AdapterOptions {
  std::string name;
  std::vector<AdapterPart> parts{};
};

}  // namespace rlx
