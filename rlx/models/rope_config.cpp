// Reads rotary positions of configuration files, in the older and the newer layout.
#include "rlx/models/rope_config.h"

#include <cmath>

#include "rlx/error.h"

namespace rlx {
namespace {

// YaRN's attention factor for one of its two mscale values.
double yarn_scale(double factor, double strength) { return factor <= 1 ? 1 : 0.1 * strength * std::log(factor) + 1; }

double positive_number(const ConfigKeys& k, std::string_view key, double fallback) {
  const double v = k.number_or(key, fallback);
  if (!(v > 0)) k.bad(concat_text("\"", key, "\" is ", v, ", expected a positive number"));
  return v;
}

RopeScaling parse_scaling(const ConfigKeys& k, const std::string& type) {
  if (type == "default" || type.empty()) return RopeScaling::None;
  if (type == "linear") return RopeScaling::Linear;
  if (type == "dynamic") return RopeScaling::Dynamic;
  if (type == "yarn") return RopeScaling::Yarn;
  if (type == "llama3") return RopeScaling::Llama3;
  if (type == "longrope" || type == "su") return RopeScaling::Long;
  k.unsupported(concat_text("the rope scaling \"", type, "\" is not supported"),
                "supported are default, linear, dynamic, yarn, llama3 and longrope");
}

void read_scaling(const ConfigKeys& root, const ConfigKeys& k, const RopeDefaults& d, RopeSpec& s) {
  const std::int64_t max_positions = d.max_positions;
  s.scaling = parse_scaling(k, k.has("rope_type") ? k.text("rope_type", "") : k.text("type", "default"));
  if (s.scaling == RopeScaling::None) return;
  if (s.scaling == RopeScaling::Yarn && d.yarn_is_long) s.scaling = RopeScaling::Long;
  constexpr std::string_view kOriginal = "original_max_position_embeddings";
  // As in transformers: the file's own key wins over that of the object, and dynamic scaling uses neither.
  s.original_context =
      s.scaling == RopeScaling::Dynamic ? max_positions : root.size_or(kOriginal, k.size_or(kOriginal, max_positions));
  const double stretched = static_cast<double>(max_positions) / static_cast<double>(s.original_context);
  if (s.scaling == RopeScaling::Long) {
    s.factor = positive_number(k, "factor", stretched);
    s.short_factors = k.numbers("short_factor"), s.long_factors = k.numbers("long_factor");
    for (const auto* factors : {&s.short_factors, &s.long_factors})
      if (factors->size() != static_cast<std::size_t>(s.rotated / 2))
        k.bad(concat_text("\"", factors == &s.short_factors ? "short_factor" : "long_factor", "\" has ",
                          factors->size(), " entries for ", s.rotated / 2, " pairs"));
    const double grown =
        s.factor <= 1 ? 1 : std::sqrt(1 + std::log(s.factor) / std::log(static_cast<double>(s.original_context)));
    s.table_scale = positive_number(k, "attention_factor", grown);
    return;
  }
  s.factor = positive_number(k, "factor", s.scaling == RopeScaling::Yarn ? stretched : 0);
  if (s.scaling == RopeScaling::Yarn) {
    const double up = k.number_or("mscale", 0), all = k.number_or("mscale_all_dim", 0);
    const double both =
        up != 0 && all != 0 ? yarn_scale(s.factor, up) / yarn_scale(s.factor, all) : yarn_scale(s.factor, 1);
    s.table_scale = positive_number(k, "attention_factor", both);
    s.beta_fast = positive_number(k, "beta_fast", 32), s.beta_slow = positive_number(k, "beta_slow", 1);
    s.truncate = k.flag("truncate", true);
  }
  if (s.scaling == RopeScaling::Llama3) {
    s.low_freq_factor = positive_number(k, "low_freq_factor", 0),
    s.high_freq_factor = positive_number(k, "high_freq_factor", 0);
    if (!(s.high_freq_factor > s.low_freq_factor))
      k.bad(concat_text("\"high_freq_factor\" is ", s.high_freq_factor, ", expected more than \"low_freq_factor\" ",
                        s.low_freq_factor));
  }
}

// The object of the newer layout, if this file has that layout.
std::optional<ConfigKeys> parameters(const ConfigKeys& k, std::string_view part) {
  std::optional<ConfigKeys> all = k.object("rope_parameters");
  if (all && !part.empty() && all->has(part)) return all->object(part);
  return all;
}

RopeSpec read(const ConfigKeys& k, const RopeDefaults& d, bool local) {
  std::optional<ConfigKeys> newer = parameters(k, d.part), older;
  if (!local) older = k.object("rope_scaling");
  if (older && older->count() == 0) older.reset();
  double theta = d.theta;
  if (newer &&
      older) {  // the older key wins over the newer one, from which a family with several parts keeps the theta
    if (!d.part.empty()) theta = positive_number(*newer, "rope_theta", theta);
    newer.reset();
    theta = positive_number(*older, "rope_theta", theta);
  }
  const ConfigKeys& from = newer ? *newer : k;
  RopeSpec s;
  s.theta = newer || !local ? positive_number(from, "rope_theta", theta) : theta;
  constexpr std::string_view kPartial = "partial_rotary_factor";
  const double partial = from.number_or(kPartial, k.number_or(kPartial, d.partial));
  if (!d.partly && partial != d.partial)
    k.unsupported(concat_text("\"", kPartial, "\" is ", partial, ", but this family rotates whole heads"));
  if (!(partial > 0) || partial > 1)
    k.bad(concat_text("the rotated fraction of a head is ", partial, ", expected 0 to 1"));
  s.rotated = static_cast<std::int64_t>(static_cast<double>(d.head_dim) * partial);
  if (s.rotated < 2 || s.rotated % 2)
    k.bad(concat_text("rope rotates ", s.rotated, " elements of heads of ", d.head_dim,
                      ", expected an even number of at least 2"));
  if (newer)
    read_scaling(k, from, d, s);
  else if (older)
    read_scaling(k, *older, d, s);
  return s;
}

}  // namespace

std::string_view rope_scaling_name(RopeScaling scaling) {
  switch (scaling) {
    case RopeScaling::None: return "none";
    case RopeScaling::Linear: return "linear";
    case RopeScaling::Dynamic: return "dynamic";
    case RopeScaling::Yarn: return "yarn";
    case RopeScaling::Llama3: return "llama3";
    case RopeScaling::Long: return "longrope";
  }
  return "unknown";
}

RopeSpec read_rope(const ConfigKeys& k, const RopeDefaults& d) { return read(k, d, false); }
RopeSpec read_local_rope(const ConfigKeys& k, const RopeDefaults& d) { return read(k, d, true); }

void read_mla_rope(const ConfigKeys& k, DecoderConfig& c) {
  RopeDefaults d{.head_dim = c.mla->rope_dim};
  d.max_positions = c.max_positions;
  RopeSpec s = read_rope(k, d);
  s.pairing = RopePairing::Interleaved;
  // The authors' code multiplies the scores by the square of this; the port in transformers 4.57 omits it.
  std::optional<ConfigKeys> scaling = parameters(k, {});
  if (!scaling) scaling = k.object("rope_scaling");
  const double all = scaling && s.scaling == RopeScaling::Yarn ? scaling->number_or("mscale_all_dim", 0) : 0;
  const double m = all != 0 ? yarn_scale(s.factor, all) : 1;
  c.attention_scale = m * m / std::sqrt(static_cast<double>(c.head_dim));
  c.ropes = {s};
}

}  // namespace rlx
