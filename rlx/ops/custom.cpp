// Custom: ops defined by other repositories, and the registry of their records.
#include "rlx/ir/ops/custom.h"
#include "rlx/ir/custom_op.h"

#include <map>
#include <memory>
#include <mutex>

#include "rlx/base/forks.h"

namespace rlx {
namespace {

struct Entry {
  std::string name, what;  // storage of the record's string views
  OpDef def;
  std::vector<std::string> operands;
};
struct Registry {
  ProcessMutex mutex;
  std::map<std::string, std::unique_ptr<const Entry>, std::less<>> entries;
};
Registry& registry() {
  static Registry& r = *new Registry;  // never destroyed: threads may outlive exit()
  return r;
}

// "acme.scaled_tanh": at least two words, joined by dots. Words have a-z, 0-9 and _ and start with a letter.
bool well_formed(std::string_view name) {
  int dots = 0;
  bool start = true;
  for (char c : name) {
    const bool letter = c >= 'a' && c <= 'z';
    if (start && !letter) return false;
    if (!letter && c != '.' && c != '_' && !(c >= '0' && c <= '9')) return false;
    dots += c == '.';
    start = c == '.';
  }
  return dots > 0 && !start;
}

[[noreturn]] void refuse(std::string_view name, std::string problem, std::string hint = {}) {
  throw Error(ErrorCode::InvalidArgument, concat_text("register_op('", name, "'): ", problem), std::move(hint));
}

void check_record(const OpDef& def) {
  if (!well_formed(def.name))
    refuse(def.name, "the name must be lower-case words joined by dots",
           "name it after its project, for example 'acme.scaled_tanh'");
  if (def.kind != OpKind::Custom) refuse(def.name, "its kind must be OpKind::Custom");
  if (!def.attrs.empty())
    refuse(def.name, "it must not describe attributes",
           "a custom op keeps its attributes in ops::Custom::attrs: see custom_op");
  if (def.level == Level::Lir) refuse(def.name, "only the planner makes LIR ops");
  if (def.is_leaf() || def.is_view()) refuse(def.name, "it must not be a leaf or a view");
  if (def.elementwise == ElementwiseKind::InBodies)
    refuse(def.name, "custom ops cannot be in the bodies of regions", "use ElementwiseKind::Yes");
  if (!def.infer.has()) refuse(def.name, "it has no shape rule (infer)");
  const bool composite = def.decompose.has();
  if (!def.reference.has() && !(composite && def.reference.derived()))
    refuse(def.name, "it has no reference rule and no decomposition",
           "give it a reference rule, or a decomposition and .reference = by_decomposition");
  if (!composite && (def.decompose.derived() || def.vjp.derived() || def.jvp.derived() || def.batch.derived()))
    refuse(def.name, "a rule is by_decomposition, but it has no decomposition", "write the rule, or none(\"why not\")");
  if (def.trait == OpTrait::Ordered && composite)
    refuse(def.name, "an ordered op cannot have a decomposition", "give it a reference rule or a kernel only");
  if (def.level == Level::Hir && !composite) refuse(def.name, "an HIR block needs a decomposition");
  if (def.inputs.required > def.inputs.count) refuse(def.name, "it has more required operands than names of operands");
}

struct CustomRules {
  static Result<Shapes> infer(const InferContext& c) {
    const std::string& name = c.op<ops::Custom>().name;
    return Diagnostic{ErrorCode::NotFound,
                      concat_text("no op '", name, "' is registered"),
                      {},
                      "call register_op with its OpDef first"};
  }
  static constexpr AttrField attrs[] = {field<&ops::Custom::name>("name", AttrPlace::Mnemonic),
                                        field<&ops::Custom::attrs>("attrs")};
};
constexpr NoRule kNotRegistered = none("the registered OpDef decides");

}  // namespace

constinit const OpDef ops::Custom::def{
    .kind = kind,
    .name = "custom",
    .what = "An op of another project, as registered with register_op under its name.",
    .inputs = variadic_inputs("x", 0),
    .attrs = CustomRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Stated,
    .infer = CustomRules::infer,
    .decompose = kNotRegistered,
    .vjp = kNotRegistered,
    .jvp = kNotRegistered,
    .batch = kNotRegistered,
    .reference = kNotRegistered,
    .cost = moves_bytes};

void register_op(const OpDef& def) {
  check_record(def);
  auto entry = std::make_unique<Entry>(Entry{std::string(def.name), std::string(def.what), def, {}});
  for (int i = 0; i < def.inputs.count; ++i) entry->operands.emplace_back(def.inputs.names[i]);
  for (int i = 0; i < def.inputs.count; ++i)
    entry->def.inputs.names[i] = entry->operands[static_cast<std::size_t>(i)];
  entry->def.name = entry->name;
  entry->def.what = entry->what;
  entry->def.attrs = CustomRules::attrs;
  if (!entry->def.cost.has()) entry->def.cost = moves_bytes;
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  std::string name = entry->name;
  if (!r.entries.try_emplace(name, std::move(entry)).second) refuse(name, "an op of this name is registered already");
}

const OpDef* registered_op(std::string_view name) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  auto it = r.entries.find(name);
  return it == r.entries.end() ? nullptr : &it->second->def;
}

std::vector<const OpDef*> registered_ops() {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  std::vector<const OpDef*> out;
  for (const auto& [name, entry] : r.entries) out.push_back(&entry->def);
  return out;
}

const OpDef& op_def(const OpBox& op) {
  const auto* custom = op.get_if<ops::Custom>();
  const OpDef* registered = custom ? registered_op(custom->name) : nullptr;
  return registered ? *registered : op_def(op.kind());
}

void detail::throw_attr_bytes(const OpBox& op, std::size_t read) {
  throw Error(ErrorCode::InvalidArgument,
              concat_text(op_text_name(op), " has ", op.as<ops::Custom>().attrs.size(),
                          " bytes of attributes, but its rules read ", read),
              "build the op with custom_op, with the attributes and types of its OpDef");
}

}  // namespace rlx
