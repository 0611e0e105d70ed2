// The table of all op records, and creation and destruction of op structs by kind.
#include <array>
#include <unordered_map>

#include "rlx/ir/custom_op.h"
#include "rlx/ir/op.h"

namespace rlx {
namespace {

#define RLX_RECORD(Kind) &ops::Kind::def,
constexpr std::array<const OpDef*, kNumOpKinds> kDefs{RLX_FOR_EACH_OP(RLX_RECORD)};
#undef RLX_RECORD

#define RLX_KIND_OF(Kind) ops::Kind::kind,
constexpr OpKind kStructs[] = {RLX_FOR_EACH_OP(RLX_KIND_OF)};
#undef RLX_KIND_OF
constexpr bool every_struct_has_its_kind() {
  for (int i = 0; i < kNumOpKinds; ++i)
    if (static_cast<int>(kStructs[i]) != i) return false;
  return true;
}
static_assert(every_struct_has_its_kind(), "RLX_OP(Kind) of a struct must say the struct's own name");

template <class Op>
std::shared_ptr<void> make_op() {
  return std::make_shared<Op>();
}
#define RLX_MAKE(Kind) &make_op<ops::Kind>,
constexpr std::array<std::shared_ptr<void> (*)(), kNumOpKinds> kMakers{RLX_FOR_EACH_OP(RLX_MAKE)};
#undef RLX_MAKE

// Text name -> (record, value of its mnemonic attribute or -1).
struct NameEntry {
  const OpDef* def;
  int mnemonic;
};

const AttrField* mnemonic_field(const OpDef& def) {
  for (const AttrField& f : def.attrs)
    if (f.place == AttrPlace::Mnemonic || f.place == AttrPlace::Suffix) return &f;
  return nullptr;
}

// "sum" and "max" alone would be ambiguous, so the names are reduce_sum, arg_max, cumulative_sum.
std::string mnemonic_name(const OpDef& def, const AttrField& f, std::string_view value) {
  return f.place == AttrPlace::Suffix ? concat_text(def.name, "_", value) : std::string(value);
}

const std::unordered_map<std::string, NameEntry>& names() {
  static const auto* table = [] {
    auto* t = new std::unordered_map<std::string, NameEntry>();
    for (const OpDef* def : kDefs) {
      const AttrField* f = mnemonic_field(*def);
      if (!f) {
        t->emplace(std::string(def->name), NameEntry{def, -1});
        continue;
      }
      for (std::size_t i = 0; i < f->enum_names.size(); ++i)
        t->emplace(mnemonic_name(*def, *f, f->enum_names[i]), NameEntry{def, static_cast<int>(i)});
    }
    return t;
  }();
  return *table;
}

}  // namespace

const OpDef& op_def(OpKind kind) {
  if (static_cast<std::size_t>(kind) >= kDefs.size())
    detail::throw_no_enumerator("OpKind", static_cast<std::int64_t>(kind));
  return *kDefs[static_cast<std::size_t>(kind)];
}

std::span<const OpDef* const> all_op_defs() { return kDefs; }

std::shared_ptr<void> make_default_op(OpKind kind) {
  if (static_cast<std::size_t>(kind) >= kDefs.size())
    detail::throw_no_enumerator("OpKind", static_cast<std::int64_t>(kind));
  return kMakers[static_cast<std::size_t>(kind)]();
}

std::string op_text_name(const OpBox& op) {
  if (const auto* custom = op.get_if<ops::Custom>(); custom && !custom->name.empty()) return custom->name;
  const OpDef& def = op_def(op.kind());
  const AttrField* f = mnemonic_field(def);
  if (!f || f->type != AttrType::Enum) return std::string(def.name);
  auto value = static_cast<std::size_t>(std::get<std::int64_t>(f->get(op.data())));
  if (value >= f->enum_names.size()) return std::string(def.name);  // errors about broken ops are printed here too
  return mnemonic_name(def, *f, f->enum_names[value]);
}

std::optional<NamedOp> find_op(std::string_view text_name) {
  if (text_name == "fused_matmul_bias_act")
    text_name = ops::FusedDot::def.name;  // the documented name of its bias variant
  if (registered_op(text_name))
    return NamedOp{&ops::Custom::def, std::make_shared<ops::Custom>(ops::Custom{std::string(text_name), {}})};
  auto it = names().find(std::string(text_name));
  if (it == names().end()) return std::nullopt;
  NamedOp out{it->second.def, make_default_op(it->second.def->kind)};
  if (it->second.mnemonic >= 0) mnemonic_field(*out.def)->set(out.op.get(), std::int64_t{it->second.mnemonic});
  return out;
}

}  // namespace rlx
