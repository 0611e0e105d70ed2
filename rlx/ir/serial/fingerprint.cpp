// Fingerprints: xxh3-128 over the canonical encoding. Only this file uses xxhash.
#include "rlx/ir/serial/fingerprint.h"

#include <memory>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "rlx/ir/module.h"
#include "rlx/ir/serial/serialize.h"

namespace rlx {
namespace {

class HashSink : public ByteSink {
 public:
  HashSink() : state_(XXH3_createState(), &XXH3_freeState) {
    check(state_ && XXH3_128bits_reset(state_.get()) == XXH_OK, "xxh3 state");
  }
  void write(const void* data, std::size_t size) override { XXH3_128bits_update(state_.get(), data, size); }
  template <class T>
  void number(T v) {
    auto wide = static_cast<std::uint64_t>(v);
    write(&wide, sizeof wide);
  }
  Fingerprint digest() const {
    XXH128_hash_t h = XXH3_128bits_digest(state_.get());
    return {h.high64, h.low64};
  }

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
};

void hash_plan(HashSink& h, const LirBufferPlan& plan) {
  h.number(plan.opaque ? 1 : 0);
  h.number(plan.arenas.size());
  for (std::size_t bytes : plan.arenas) h.number(bytes);
  h.number(plan.alignment);
  h.number(plan.values.size());
  for (const auto& results : plan.values) {
    h.number(results.size());
    for (const LirValue& v : results) {
      h.number(static_cast<std::uint8_t>(v.place));
      h.number(v.index);
      h.number(v.offset);
      h.number(v.bytes);
      h.number(v.strides.size());
      for (std::int64_t s : v.strides) h.number(s);
      h.number(v.is_view);
    }
  }
  h.number(plan.schedule.size());
  for (const LirStep& s : plan.schedule) {
    h.number(s.node.index);
    h.number(s.encoded);
    h.number(s.predecessors.size());
    for (std::int32_t p : s.predecessors) h.number(p);
  }
  auto value = [&](Value v) {
    h.number(v.node.index);
    h.number(v.result);
  };
  h.number(plan.output_copies.size());
  for (const LirOutputCopy& c : plan.output_copies) {
    value(c.value);
    h.number(c.output);
  }
  for (const auto* copies : {&plan.state_copies, &plan.remote_state_copies}) {
    if (copies == &plan.remote_state_copies && copies->empty()) continue;  // one device
    h.number(copies->size());
    for (const LirStateCopy& c : *copies) {
      value(c.value);
      h.number(c.state);
    }
  }
  for (const auto* devices : {&plan.node_devices, &plan.arena_devices}) {
    if (devices->empty()) continue;  // one device
    h.number(devices->size());
    for (std::uint32_t d : *devices) h.number(d);
  }
  h.number(plan.aliases.size());
  for (const LirAlias& a : plan.aliases) {
    h.number(a.input);
    h.number(a.output);
    h.number(a.refused.empty());
  }
  for (const LirPart& p : plan.parts) {
    h.number(p.device);
    h.number(p.host_controlled);
    h.number(p.nodes.size());
    for (NodeId id : p.nodes) h.number(id.index);
    for (const auto* values : {&p.inputs, &p.outputs})
      for (Value v : *values) value(v);
    for (const LirModule& m : p.modules) hash_plan(h, m.plan);
  }
}

}  // namespace

std::string Fingerprint::text() const {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (std::uint64_t part : {high, low})
    for (int shift = 60; shift >= 0; shift -= 4) out += digits[(part >> shift) & 15];
  return out;
}

Fingerprint fingerprint(const Graph& g) {
  HashSink sink;
  encode_graph(g, EncodeParts::Content, sink);
  return sink.digest();
}

Fingerprint structure_fingerprint(const Graph& g) {
  HashSink sink;
  encode_graph(g, EncodeParts::Structure, sink);
  return sink.digest();
}

std::vector<Fingerprint> node_fingerprints(const Graph& g) {
  std::vector<Fingerprint> all;
  all.reserve(g.num_nodes());
  for (const Node& n : g.nodes()) {
    HashSink sink;
    encode_node(n, sink);
    for (Value v : n.inputs) {
      sink.number(all[v.node.index].high);
      sink.number(all[v.node.index].low);
      sink.number(v.result);
    }
    all.push_back(sink.digest());
  }
  return all;
}

Fingerprint fingerprint(const LirModule& lir) {
  HashSink sink;
  encode_graph(lir.graph, EncodeParts::Content, sink);
  encode_graph(lir.prepare, EncodeParts::Content, sink);
  hash_plan(sink, lir.plan);
  return sink.digest();
}

Fingerprint fingerprint_bytes(const void* data, std::size_t size) {
  if (data == nullptr && size != 0)
    throw Error(ErrorCode::InvalidArgument, concat_text("fingerprint_bytes: ", size, " bytes given as a null pointer"));
  XXH128_hash_t h = XXH3_128bits(data, size);
  return {h.high64, h.low64};
}

bool same_graph(const Graph& a, const Graph& b) {
  if (&a == &b) return true;
  if (a.num_nodes() != b.num_nodes() || a.outputs() != b.outputs() || a.state_updates() != b.state_updates() ||
      a.symbols() != b.symbols() || a.symbol_sources() != b.symbol_sources())
    return false;
  for (std::size_t i = 0; i < a.num_nodes(); ++i) {
    const Node& x = a.nodes()[i];
    const Node& y = b.nodes()[i];
    if (x.inputs != y.inputs || x.shapes != y.shapes || !same_op(x.op, y.op)) return false;
  }
  return true;
}

}  // namespace rlx
