// Low-rank adapters (Hu et al. 2021, arXiv:2106.09685): small matrices that change what the matrices of a model say.
#pragma once

#include <string>
#include <vector>

namespace rlx {

/// A folder as the Python package PEFT writes it: adapter_config.json, adapter_model.safetensors. Its change of the
/// model is multiplied by `scale`.
struct AdapterPart {
  std::string path;
  double scale = 1;
};

/// What requests may ask for by name; the changes of several parts are added up.
struct AdapterOptions {
  std::string name;
  std::vector<AdapterPart> parts{};
};

}  // namespace rlx
