// The table of all op records, and the lifetimes of op structs by kind.
#include <array>
#include <unordered_map>

#include "rlx/ir/custom_op.h"

namespace rlx {
namespace {

struct OpLifetime {
  std::shared_ptr<void> (*make)();
};

template <class List>
struct Tables;
template <class... Ops>
struct Tables<OpList<Ops...>> {
  static constexpr std::array<const OpDef*, sizeof...(Ops)> defs{&Ops::def...};
  static constexpr std::array<OpLifetime, sizeof...(Ops)> lifetimes{
      OpLifetime{[]() -> std::shared_ptr<void> { return std::make_shared<Ops>(); }}...};
};
using Table = Tables<AllOps>;

// Text name -> (record, value of its mnemonic attribute or -1).
struct NameEntry {
  const OpDef* def;
  int mnemonic;
};

const AttrField* mnemonic_field(const OpDef& def) {
  for (const AttrField& f : def.attrs)
    if (f.place == AttrPlace::Mnemonic) return &f;
  return nullptr;
}

// "reduce_sum", "arg_max", "cumulative_sum" need the op's name in front: "sum" and "max" alone would be ambiguous.
std::string mnemonic_name(const OpDef& def, std::string_view value) {
  if (def.kind == OpKind::Activation || def.kind == OpKind::Binary || def.kind == OpKind::Compare)
    return std::string(value);
  return concat_text(def.name, "_", value);
}

const std::unordered_map<std::string, NameEntry>& names() {
  static const auto* table = [] {
    auto* t = new std::unordered_map<std::string, NameEntry>();
    for (const OpDef* def : Table::defs) {
      const AttrField* f = mnemonic_field(*def);
      if (!f) {
        t->emplace(std::string(def->name), NameEntry{def, -1});
        continue;
      }
      for (std::size_t i = 0; i < f->enum_names.size(); ++i)
        t->emplace(mnemonic_name(*def, f->enum_names[i]), NameEntry{def, static_cast<int>(i)});
    }
    return t;
  }();
  return *table;
}

}  // namespace

const OpDef& op_def(OpKind kind) {
  if (static_cast<std::size_t>(kind) >= Table::defs.size())
    detail::throw_no_enumerator("OpKind", static_cast<std::int64_t>(kind));
  return *Table::defs[static_cast<std::size_t>(kind)];
}

std::span<const OpDef* const> all_op_defs() { return Table::defs; }

std::shared_ptr<void> make_default_op(OpKind kind) {
  if (static_cast<std::size_t>(kind) >= Table::defs.size())
    detail::throw_no_enumerator("OpKind", static_cast<std::int64_t>(kind));
  return Table::lifetimes[static_cast<std::size_t>(kind)].make();
}

std::string op_text_name(const OpBox& op) {
  if (const auto* custom = op.get_if<ops::Custom>(); custom && !custom->name.empty()) return custom->name;
  const OpDef& def = op_def(op.kind());
  const AttrField* f = mnemonic_field(def);
  if (!f || f->type != AttrType::Enum) return std::string(def.name);
  auto value = static_cast<std::size_t>(std::get<std::int64_t>(f->get(op.data())));
  if (value >= f->enum_names.size()) return std::string(def.name);  // errors about broken ops are printed through here
  return mnemonic_name(def, f->enum_names[value]);
}

std::optional<NamedOp> find_op(std::string_view text_name) {
  if (text_name == "fused_matmul_bias_act")
    text_name = ops::FusedDot::def.name;  // the documented name of its bias form
  if (registered_op(text_name))
    return NamedOp{&ops::Custom::def, std::make_shared<ops::Custom>(ops::Custom{std::string(text_name), {}})};
  auto it = names().find(std::string(text_name));
  if (it == names().end()) return std::nullopt;
  NamedOp out{it->second.def, make_default_op(it->second.def->kind)};
  if (it->second.mnemonic >= 0) mnemonic_field(*out.def)->set(out.op.get(), std::int64_t{it->second.mnemonic});
  return out;
}

}  // namespace rlx
