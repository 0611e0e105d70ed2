// Binds signal functions of rlx/functions: Fourier transforms, short-time transforms, spectra, convolution, windows.
#include "rlx/functions/fft.h"
#include "python/bindings/call_operands.h"
#include "python/bindings/common.h"
#include "python/bindings/tracing.h"
#include "rlx/functions/stft.h"
#include "rlx/ir/builder.h"

namespace rlx::python {
namespace {

// The index of `name` in a list of names.
template <std::size_t N>
int choice(const std::string& name, const std::string_view (&names)[N], const char* what) {
  for (std::size_t i = 0; i < N; ++i)
    if (names[i] == name) return static_cast<int>(i);
  std::vector<std::string> known(std::begin(names), std::end(names));
  raise(ErrorCode::InvalidArgument, concat_text(what, " '", name, "' is not known"),
        did_you_mean(name, known, quoted_names(known, 20)));
}
FftNorm norm_of(const std::string& name) {
  return static_cast<FftNorm>(choice(name, EnumNames<FftNorm>::values, "norm"));
}

nb::object transform(nb::sequence xs, const std::string& which, nb::handle lengths,
                     const std::vector<std::int64_t>& axes, const std::string& norm_name) {
  static constexpr std::string_view kNames[] = {"fft", "ifft", "rfft", "irfft", "hfft", "ihfft"};
  const CallOperands c(xs);
  const FftNorm norm = norm_of(norm_name);
  const Operand x = c[0];
  const fft::Axes given{axes, lengths.is_none() ? Dims() : dims_from(lengths, "s")};
  switch (choice(which, kNames, "transform")) {
    case 0: return c.one(fft::fftn(x, given, norm));
    case 1: return c.one(fft::ifftn(x, given, norm));
    case 2: return c.one(fft::rfftn(x, given, norm));
    case 3: return c.one(fft::irfftn(x, given, norm));
    default: break;
  }
  const fft::Length n = given.lengths.empty() ? fft::Length() : given.lengths[0];
  const std::int64_t axis = axes.empty() ? -1 : axes[0];
  return c.one(which == "hfft" ? fft::hfft(x, n, axis, norm) : fft::ihfft(x, n, axis, norm));
}

fft::StftOptions stft_options(nb::dict d, const CallOperands& c) {
  static constexpr std::string_view kPads[] = {"constant", "reflect", "edge"};
  fft::StftOptions o;
  o.n_fft = nb::cast<std::int64_t>(d["n_fft"]);
  o.hop = nb::cast<std::int64_t>(d["hop"]);
  o.win_length = nb::cast<std::int64_t>(d["win_length"]);
  o.center = nb::cast<bool>(d["center"]);
  o.pad = static_cast<fft::StftPad>(choice(nb::cast<std::string>(d["pad"]), kPads, "pad mode"));
  o.normalized = nb::cast<bool>(d["normalized"]);
  o.onesided = nb::cast<bool>(d["onesided"]);
  o.window = c.maybe(1);
  return o;
}
fft::WelchOptions welch_options(nb::dict d, const CallOperands& c) {
  static constexpr std::string_view kScalings[] = {"density", "spectrum"}, kAverages[] = {"mean", "median"};
  fft::WelchOptions o;
  o.fs = nb::cast<double>(d["fs"]);
  o.nperseg = nb::cast<std::int64_t>(d["nperseg"]);
  o.noverlap = nb::cast<std::int64_t>(d["noverlap"]);
  o.nfft = nb::cast<std::int64_t>(d["nfft"]);
  o.detrend = nb::cast<bool>(d["detrend"]);
  o.scaling = static_cast<fft::WelchScaling>(choice(nb::cast<std::string>(d["scaling"]), kScalings, "scaling"));
  o.average = static_cast<fft::WelchAverage>(choice(nb::cast<std::string>(d["average"]), kAverages, "average"));
  o.window = c.maybe(1);
  return o;
}
fft::MelOptions mel_options(nb::dict d) {
  fft::MelOptions o;
  o.sample_rate = nb::cast<double>(d["sample_rate"]);
  o.n_fft = nb::cast<std::int64_t>(d["n_fft"]);
  o.n_mels = nb::cast<std::int64_t>(d["n_mels"]);
  o.fmin = nb::cast<double>(d["fmin"]);
  o.fmax = nb::cast<double>(d["fmax"]);
  o.htk = nb::cast<bool>(d["htk"]);
  o.slaney_norm = nb::cast<bool>(d["slaney_norm"]);
  return o;
}

Tensor window(const std::string& name, std::int64_t n, double beta, bool symmetric) {
  static constexpr std::string_view kNames[] = {"hann", "hamming", "blackman", "kaiser"};
  switch (choice(name, kNames, "window")) {
    case 0: return fft::hann_window(n, symmetric);
    case 1: return fft::hamming_window(n, symmetric);
    case 2: return fft::blackman_window(n, symmetric);
    default: return fft::kaiser_window(n, beta, symmetric);
  }
}

}  // namespace

void bind_fft(nb::module_& m) {
  m.def("fft", &transform, nb::arg("xs"), nb::arg("which"), nb::arg("lengths").none(), nb::arg("axes"),
        nb::arg("norm"));
  m.def("fftshift", [](nb::sequence xs, const std::vector<std::int64_t>& axes, bool back) {
    const CallOperands c(xs);
    return c.one(back ? fft::ifftshift(c[0], axes) : fft::fftshift(c[0], axes));
  });
  m.def("fftfreq", [](std::int64_t n, double spacing, nb::handle dtype, bool half) {
    const DType t = dtype_from(dtype);
    return array_object(half ? fft::rfftfreq(n, spacing, t) : fft::fftfreq(n, spacing, t));
  });
  m.def("conj", [](nb::sequence xs) {
    const CallOperands c(xs);
    const Operand x = c[0];
    return c.one(x.expr().graph().conj(x));
  });
  m.def("stft", [](nb::sequence xs, nb::dict options) {
    const CallOperands c(xs);
    return c.one(fft::stft(c[0], stft_options(options, c)));
  });
  m.def(
      "istft",
      [](nb::sequence xs, nb::dict options, std::optional<std::int64_t> length) {
        const CallOperands c(xs);
        return c.one(fft::istft(c[0], stft_options(options, c), length));
      },
      nb::arg("xs"), nb::arg("options"), nb::arg("length").none());
  m.def("welch", [](nb::sequence xs, nb::dict options) {
    const CallOperands c(xs);
    return c.one(fft::welch(c[0], welch_options(options, c)));
  });
  m.def("welch_peaks", [](nb::sequence xs, std::int64_t count, nb::dict options) {
    const CallOperands c(xs);
    const fft::WelchPeaksResult r = fft::welch_peaks(c[0], count, welch_options(options, c));
    return nb::make_tuple(c.one(r.frequencies), c.one(r.powers));
  });
  m.def("mel_filterbank", [](nb::dict options) { return array_object(fft::mel_filterbank(mel_options(options))); });
  m.def(
      "log_mel",
      [](nb::sequence xs, nb::dict mel, nb::dict stft, double power, double amin, double ref,
         std::optional<double> top_db) {
        const CallOperands c(xs);
        fft::LogMelOptions o;
        o.mel = mel_options(mel);
        o.stft = stft_options(stft, c);
        o.power = power, o.amin = amin, o.ref = ref, o.top_db = top_db;
        return c.one(fft::log_mel(c[0], o));
      },
      nb::arg("xs"), nb::arg("mel"), nb::arg("stft"), nb::arg("power"), nb::arg("amin"), nb::arg("ref"),
      nb::arg("top_db").none());
  m.def("fft_conv1d", [](nb::sequence xs, const std::string& part) {
    static constexpr std::string_view kParts[] = {"full", "same", "valid"};
    const CallOperands c(xs);
    return c.one(fft::fft_conv1d(c[0], c[1], static_cast<fft::ConvolutionPart>(choice(part, kParts, "mode"))));
  });
  m.def("next_fast_len", &fft::next_fast_len);
  m.def("signal_window", [](const std::string& name, std::int64_t n, double beta, bool symmetric) {
    return array_object(window(name, n, beta, symmetric));
  });
}

}  // namespace rlx::python
