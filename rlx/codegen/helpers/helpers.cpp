// Looks up WGSL functions and their callees by name.
#include "rlx/codegen/helpers/helpers.h"

#include <algorithm>

#include "rlx/codegen/helpers/helper_table.h"
#include "rlx/error.h"

namespace rlx::codegen {
namespace {

const Helper& helper_of(std::string_view name) {
  for (std::span<const Helper> part : {number_helpers(), formula_helpers(), exponential_helpers(), circular_helpers(),
                                       power_helpers(), word_helpers()})
    for (const Helper& h : part)
      if (h.name == name) return h;
  check(false, concat_text("a kernel calls the function ", name, ", which the WGSL library lacks"));
  return number_helpers()[0];
}

void add_helper(std::string_view name, std::vector<std::string_view>& out) {
  const Helper& h = helper_of(name);
  if (std::find(out.begin(), out.end(), h.text) != out.end()) return;
  for (std::string_view left = h.calls; !left.empty();) {
    const std::size_t end = std::min(left.find(' '), left.size());
    add_helper(left.substr(0, end), out);
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  out.push_back(h.text);
}

}  // namespace

std::vector<std::string_view> helper_texts(std::string_view name) {
  std::vector<std::string_view> out;
  add_helper(name, out);
  return out;
}

}  // namespace rlx::codegen
