// The grids of GGUF's schemes of one to three bits, and the packing of their blocks.
//
// A grid is a set of rows of values. The number of a row is the sum of digit k times base^k. Rows are sorted by their
// numbers. So a grid is stored as one bit for each possible row.
#include "rlx/tensor/block_grids.h"

#include <cstring>
#include <string_view>

#include "rlx/error.h"
#include "rlx/tensor/half.h"

namespace rlx {
namespace {

// Six bits per character in base64's alphabet, lowest bit first.
constexpr std::string_view kIq2Xxs =
    "VVBFVBBRBFEAEQBRAABAAAABABAFAAEAAAAAEAAAQBBQBFBABQBBABFBABAEAAQBQAAAQBAABAAAABAABRBBARBFAAABAAABAAABAAAAAAAAEA"
    "BAAAAAAAAAAQBBQABAABABRAABBABAABEABAAAAAAABQAAAAAAAABBARAQAAABAAAAAABAAAAEAAAAABAEAAAAAAAAAAQBBAABAAAQAAAARAAA"
    "AAAAAAAABAAAAAAQAAAAAAAFEAAABAQAFAAAAAAAQABAAAAAAAFAAAAAAAAAAAAQBBAABAEAAAAAABAAAQAAABAAAAAAAAAAAAAAABAAABABAA"
    "AAAAABAAAAAAAAAAAAAAAAAAAABAAAAAAAQBBRBBBEBQBBAABAABAAAQARAAAQABAAABEABAAAABBABAAAAABAQAAAEABAAAAAAAAABAAAAAAA"
    "AAAAAQBBAARAAAAAAAABAAAAAARAEAAAAAAAAQAAAAABAABRQBAAAAABBAAABAAAEAAAAAAABAAAAAAAAAAQAAAAAAAAAAAAAFAAAEAAAAAAAA"
    "AAAQAAAAAABAAAAAABQQAAAAABAAAAAAAAABAAAAAAAAABAAAAAAAAAAAABBAABAAABAAAABAAAAAQAAAAAAAAABAAAABAAAAARAAAAAAAAAAA"
    "AAAFAAAAAAABAAAAAAAAAAAAAAAAAAAAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAFEAAQAAAAEAAAABABABAAAAAAAAAQAAAAAAAAAAAQ"
    "BRAABAABAAAAABAAAAEAAAAABAAQAAABAABAAAAAEAAAAAAAAAAAAABAAAAAAAAAAAAAQAAAAAAAAAAAABBABBAAAAAAQAAAEAAAAAABAAAAAA"
    "AAQAAAAAAAABAAEABAAAAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAQAAAAAAABAAAAAAAAAAAAAAAAAAAAAAAEAAAAABAAQAAAAQAAA"
    "AAAAAAAAABAAAAAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABAAAAAAABAAAAAAAAAAAAAAAAAAAAAAAAAA";
constexpr std::string_view kIq2Xs =
    "VVVVRVVRBVRRBQVVVBVRBBRBBAAVRBBQBRAABEAAQVVRBVRFBQBBAAVRBBQBBQABAAAQBBAEFAAAABAAAVVBRQBBBABAABUBBAABAAAQQAAABA"
    "ABBAAAAAAEBQVVRBVRBBUBBAAVRBBQBBAABAFAQFBAABAABAAAAAVRBBQRBABBAAAQBBAABAAAAAAAABABAAQAAAAAAAQBFAABABAAEAAARAAA"
    "AAAAEAAAAAAAAAAQAAAAAAQVVBBQBBAABAABQBBAABBAQAAAAABAAEAAAAABAAARBBAQBAAAAAAAABAAAQAEAAAAQAQAAEAAAAAAAAAEBFABAA"
    "QAAABAEAAAAAAAAABABAAABABAAAAAEFAAQVVRBVVBRQBBAAVRBBQBBAARAAEQBFAQBAAAAAAAAVRRBQBBAABABAQBBABBAAAAAAEABEAAABBA"
    "AAAAAQBBAARABEAAAAABQAAABBAQAAAAABAAAAAAAAAAAAVRBBRBBAABAAAQBRAAFAAAAAAAABAAAABAAAAAAAUBBQABAABQAAQABBAAAAAAAB"
    "BAAAAAQAAAAABAAQABABAQABAAAAQAAAAEAFAAAAAAAAAAAAAAAAAQAAAQBBAABABEAEAAQBAAAAAAAAAAAAAAAABAEAAAAEAABAEAAAAAAAAA"
    "AAABAARAAAAAAABAAAAAAAAAAAAAQAAAAAAAAEAAAAAAAQAAAAAAAAAAEAAAAABEAAAAAVRBBUBBAAFAAAVFBAABQQAAAAAABAABAAAAAFAABR"
    "BVAABAABAQAAABAAAABAAAAAAQAAABAAAAAEAAAABBAQAAAEAFAAABEAAAAAAAAAAAAAAAEAAAAABBEARBBAABAEAABAAABAAEAAAABAAAAAAA"
    "AAAAEAAQAAARAAAABBBAAAAAAAAAQAAAAAAFAAAAAAQAAAAAAAAAAAAAAQAAAAAAEAAAAAQAAAAAAAAAQAAAAABAAAAAFFABEAAAAAAABAAAAA"
    "AQQAAAAAEFBAAEAAAABAABAAAAABAAAAAQAAAAAAAAAAAAAAAAAAAAAAAQAAABAAEAFBAAAAAAABBBAAAAAAAAFAAAAAAAFAAAAAQAAE";
constexpr std::string_view kIq2S =
    "VVVVRVVRVVRBRUVVRBVRVRRBVQBVRBBUVRAAREBEQVVRVVVVVQVRRBVVVRRVVRBVRBBQVRAARRBBQBBAAVRVRUVVRBRABAUBVRARRBBQABAABQ"
    "BEFABAAAAQAQVVRFVRVVRFRRBVVVVRVVRBVRBAQRRQBRQBAQBBAAVRVRRVVRBVRBBQVVRBVRBBQBBAARRBBQBBAABAAAUVRRAVRBBQBAAAVRBB"
    "QBBAQAAAEABBAABAEAAAAAAVRVRUBVABBEBAUBVQAVQBBQBBAABEAEFBBAAAFAARVRRBVRBBQBBAARRBBQBBAEBAAAQBBAABAQAAAAAARQBAQB"
    "BAAAEAAUBBAAAAAAAAQAAAEAEAAAABAFAAQVVVFVVVVQBRRBVRVVQVVRBVRBBQBVBBRRBBQBAAAVVVVRVVRBVRBBQVVRBVRBBUBBAAVRBBQBBA"
    "ABAAQQRVRBVRBBABBAAVRBBQBBAABAEAQBBAABAAAAAAAAVRVVRVVRBVRBAQVVRBVRBBQBBAARRBBQBBAQBAAAQVVRBVRBBQBBAAVRBBQBBAAB"
    "AAAQBBAEBAAAAAAAAVRBBQBBEABAAAQBBAABAAAAAAAABAQAAAAAAQAAARFVRBRRBBABBAAVRBBQBBAABAQAABBAABAEAAAAQARRBBQBBAABAA"
    "AQBBAABEAABAEAABAAAAAAAAAABAQBBAAAAAQAAABABAAAEAAAAAAAAAAAAAEAAAAAAQAVRRRQBVRARQBAQRVRBVRBAQBBAQRUBAQBBAAAAAAQ"
    "VVRAVRBBQBBAAVRBBQBBAABEAAQBBAQBAAAAAAAARQBAQBBAAAAAEQBAAABAAQAAAAAAAAEAAAFAEAAEQRVBBVRBBQBBAARQBAQBBEAAAAAQBB"
    "AABAAAAAAAEVRBBQBBAABAEAQBBAABAAAAAARABAAAAEAABAAAAQBBAEBAAAAAAAQBAAAAQEAAAAAAAAAAAAAAAAABAAREBEUBBAAAAAEEAAAA"
    "BAAQAAAAAEEAEFAAAAEFAARBBAABAAAAQAABBAQAAAAAAAAAAAAAAAAQAAAAAAAAEAABAAAAAAAEAAAAAAABAAEAAAAFAFBAAAAABAAE";
constexpr std::string_view kIq3Xxs =
    "VoYBCQAAAgiCFISBCABABUhAFoIACCAICWAIAAAAAEAAIAAgQAIAoIIAAQAAEAAAAAAAgAAAQAAARBAAIAgAAoQBKUBgBAAAFIQBAAAAAAgCFI"
    "QAAAAAEUAABIAQAAEAiAAAAAQAAAAAAEBAABAACACAAAAAAAAAAAABAEAAAAQBKUkAEAAAAoSBCEAAAgYAFIYBAGAIAAgARAAAAAAARAAAAACA"
    "IAAAIAAgAIAAAABAAAAAAAAAAoAQAAAIAAAACUgCAAQAgQQBAEgAQBAAAoQAgAAAEAABAIAAIAAAAAAAAAQAACAAEEEAEAAAgAAAAABAABAAIA"
    "AAAAACAAQAAABgAAKAICAAAAAAAAAAAABAAEAgBAQQAAIAAAAIAAAAQAAAAAgAQAAAAACAIAAABAAAAAAAAAAAgUAABAAAAAAAEAAACAAABEEA"
    "ABAAgAAAAABAEAAAAQABAAAAAgAAAAQAICAAAAABEAAACAAAAAAAAAAAAEAAAAAAQAABAAAAAAAEAAFAQAAAAIAAAAgAAAAgAAAAAABAAAAABB"
    "AAAAAAAAAAQAAAAACAAAAAEAAAAAAAIAAAAAACAIAAAAAAAgaAAQAAEAAAAAAQAEAAAAAAEAAAgQAAAEAIAgAAAEAAAAgAAIAAAAQBAABAAAAA"
    "AAAAAEAAAAAAAAAAAAAAAAA";
constexpr std::string_view kIq3S =
    "ne1IIUqCFI5FjkoIQAgIEMaSiEBpKAQCIISBKBRBAKSAIKBBJIAABQBAFhgoAAECApAACAABAIQFAUECAEBAAcxqFIFAQJABLFhAJIQBAEUAkG"
    "BBJASAEIZCCGhAAQQAoQBAKQUEAAgAJIQBAIAAAAAARCAUAAAAKUgAgIAAEEwqVpYBqUAgpUQikIBBCAAASCgCBKAiAIRJCQhCEEAQAIIAJQiA"
    "AAAJQIABAGACAEQhAIAAAAiAAAiAAFACBAAAEoKBqQpAIIgKQoAABAQAEFABBQBABAAACEhiBoIIAgACCRgAAQQEAIQBgQAEABACAAEAAIAAAA"
    "gCAUAIAAAAAEBBRSgABAQAEqABhggIAAgChIACBAIBBAhCFICAAAAAFAAEAGAAAIAoAIAAAAABAAACAABAAEAAAECABggAAAABRQAARSAQQoCB"
    "CQAAAAABBIACBBACAAAhBAIAQIAIIIBABQAQAAAAAQAQAAgCAAAAAAAAEAAAAQBAEAAAAAAAAoCAKAAABAQAAEIAAAAEAAABAABBgQQABAhAAE"
    "AAAAAAAACAIAABAkAAAABAAEAAgAAAAEAAAAAAKAAAAAAAAEJAFAUAQQAAEIAEAgCAAAgEBJQAAIAAAQAAAQCAIAAAigQAAAQAAAAAAQAAEAAA"
    "AQAAAIAAAAAABAAAAAAAAAA";
constexpr std::string_view kIq1S =
    "VVCFFCqACFFCFFDqGCiiiqBCqACFFCFFCCCRFVSFFAqACCCiYAACCC6AqAKi7qqCQq6CAICAKoKjCCKCAFFCFFCiACFFCFFCKCDCYCKCAqCCFF"
    "CFFCCSCVFCFFALCDKIKaCAqQCqqKKCi/KCIgCKAAqAChiqoACqACiCbiQu6iKIK7aii6qq6w36qr7uC6AuioryT7gkCICAiACqKqrCCKACAoiS"
    "gL6OiAyKiCQgAFoqKiCCiEAFFCVFCCSCFFCVFCKCCMCq6AChCCCVCFFCiCCCVCFFCoCC4iqgACKSCACCCKKaiKAKrqCCFCCCCCDCFBEAFFCFFC"
    "KACFFAFFQKCCgiCqCChCDFFAFFCiCCFFCFFCiACAiqqAAISEriuiCq6GqqoCHACqACCgiICQIACCASACq6wqiqCDyi6Ki6af6iL6GqSCrKqK3i"
    "KSEDqACSECEKKqCCqCCyMLqIi+qmgiOqCAgAAoCqICAIAC6iiKKK6CKgCKjC66Lu66/6iC6KiigiKgi6iCQoyIAD6Tq6e/+Ko6Sj+6366f/f/a"
    "ef66da7fy//ai+Ske4KKCEq6rDEqKCyi6CC66/6SS6DCIBixCayjqCkuCACoCCIIuqSAgACqiCmCSyCmIkCiCAiCAjAOBACiACAwmiqq6uCYqv"
    "KCqyCA4aX6C0ymOECChLq6NKVEdpEAgCCCgiCCCCBEKICqaO6KiMECaCAiBAKKqYCEIFEFFAFFCrCCFFCFFCqCCKqeoCSoCCFFCFFAKCCFFCFF"
    "AICAKQiKCAICACiigaK6GuqqKgAAiCCKOyiECCEBFFCFVCKCSFFCFFGqACqqiKACgCCFFCFFCqAAFFCFFCiDCiCqAGCqCCqKqqKC7iCogKqCCK"
    "CCoqKgCCoAQqIKgIg67CogLCKq7Sy66/6SK+uqKIShCa2CKMmDoCCgCCiomYACiCCoqqroq6imKoiiACQACoKKCAC6AAFFCFFCqCAFFCFFSqGA"
    "gSqKAClCAENQEFCiCCFFCFFAACCKIryDCAAAgqKgiC6Ci6iKAACiUCokOFAExSFFFAFFAqCAFFCFFCISCCIiiCAhAAFFAFFAqAAFFCFF";
constexpr std::int8_t kThree[] = {8, 25, 43}, kEight[] = {4, 12, 20, 28, 36, 44, 52, 62},
                      kOdd[] = {1, 3, 5, 7, 9, 11, 13, 15}, kSigned[] = {-1, 0, 1};

int six_bits(char c) {
  return c >= 'a' ? c - 'a' + 26 : c >= 'A' ? c - 'A' : c >= '0' ? c - '0' + 52 : c == '+' ? 62 : 63;
}

template <int kRows, int kWidth>
struct GridTable {
  std::array<std::int8_t, static_cast<std::size_t>(kRows* kWidth)> values{};
  BlockGrid grid;
  GridTable(std::string_view bits, std::span<const std::int8_t> digits) {
    std::size_t filled = 0;
    for (std::size_t number = 0; number < bits.size() * 6; ++number) {
      if ((six_bits(bits[number / 6]) >> number % 6 & 1) == 0) continue;
      check(filled < values.size(), "a grid has the expected number of rows");
      std::size_t rest = number;
      for (int k = 0; k < kWidth; ++k, rest /= digits.size()) values[filled++] = digits[rest % digits.size()];
    }
    check(filled == values.size(), "a grid has the expected number of rows");
    grid = {kRows, kWidth, values};
  }
  GridTable(const GridTable&) = delete;
  GridTable& operator=(const GridTable&) = delete;
};

unsigned u16_at(const std::uint8_t* p) { return static_cast<unsigned>(p[0] | p[1] << 8); }
std::uint32_t u32_at(const std::uint8_t* p) {
  std::uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}
float f16_of(unsigned bits) { return f16_bits_to_float(static_cast<std::uint16_t>(bits)); }
// The value of a scale of four bits: (1/2 + s) times `unit`.
float odd_scale(unsigned s, float unit) { return (0.5F + static_cast<float>(s)) * unit; }

struct GridUnpacker {
  const std::uint8_t* bytes;
  GridBlock out{};

  unsigned byte(std::size_t at) const { return bytes[at]; }
  void row(std::size_t i, unsigned v) { out.row[i] = static_cast<std::uint16_t>(v); }
  // 28 bits of signs and four bits of a scale for 32 elements.
  void signs_and_scale(std::size_t group, std::uint32_t word, float unit) {
    for (std::size_t k = 0; k < 4; ++k) out.sign[4 * group + k] = even_signs(word >> 7 * k & 127);
    out.scale[group] = odd_scale(word >> 28, unit);
  }
  // Elements of four bits each, from byte `at` on.
  unsigned nibble(std::size_t at, std::size_t i) const { return byte(at + i / 2) >> i % 2 * 4 & 15; }

  void iq2_xxs() {
    for (std::size_t g = 0; g < 8; ++g) {
      for (std::size_t k = 0; k < 4; ++k) row(4 * g + k, byte(2 + 8 * g + k));
      signs_and_scale(g, u32_at(bytes + 2 + 8 * g + 4), 0.25F);
    }
  }
  void iq2_xs() {
    for (std::size_t i = 0; i < 32; ++i) {
      const unsigned code = u16_at(bytes + 2 + 2 * i);
      row(i, code & 511);
      out.sign[i] = even_signs(code >> 9);
    }
    for (std::size_t g = 0; g < 16; ++g) out.scale[g] = odd_scale(nibble(66, g), 0.25F);
  }
  void iq2_s() {
    for (std::size_t i = 0; i < 32; ++i) {
      row(i, byte(2 + i) | (byte(66 + i / 4) >> i % 4 * 2 & 3) << 8);
      out.sign[i] = bytes[34 + i];
    }
    for (std::size_t g = 0; g < 16; ++g) out.scale[g] = odd_scale(nibble(74, g), 0.25F);
  }
  void iq3_xxs() {
    for (std::size_t i = 0; i < 64; ++i) row(i, byte(2 + i));
    for (std::size_t g = 0; g < 8; ++g) signs_and_scale(g, u32_at(bytes + 66 + 4 * g), 0.5F);
  }
  void iq3_s() {
    for (std::size_t i = 0; i < 64; ++i) row(i, byte(2 + i) | (byte(66 + i / 8) >> i % 8 & 1) << 8);
    for (std::size_t i = 0; i < 32; ++i) out.sign[i] = bytes[74 + i];
    for (std::size_t g = 0; g < 8; ++g) out.scale[g] = odd_scale(nibble(106, g), 2);
  }
  void delta(std::size_t i, bool negative) { out.delta[i] = negative ? -0.125F : 0.125F; }
  void iq1_s() {
    for (std::size_t g = 0; g < 8; ++g) {
      const unsigned top = u16_at(bytes + 34 + 2 * g);
      for (std::size_t k = 0; k < 4; ++k) {
        row(4 * g + k, byte(2 + 4 * g + k) | (top >> 3 * k & 7) << 8);
        delta(4 * g + k, top >> 15 != 0);
      }
      out.scale[g] = odd_scale(top >> 12 & 7, 2);
    }
  }
  void iq1_m() {
    for (std::size_t i = 0; i < 32; ++i) {
      const unsigned top = nibble(32, i);
      row(i, byte(i) | (top & 7) << 8);
      delta(i, (top & 8) != 0);
    }
    for (std::size_t g = 0; g < 16; ++g) out.scale[g] = odd_scale(u16_at(bytes + 48 + g / 4 * 2) >> g % 4 * 3 & 7, 2);
  }
  // The block's number d is spread over the upper four bits of four words.
  void split_unit() {
    unsigned bits = 0;
    for (std::size_t k = 0; k < 4; ++k) bits |= u16_at(bytes + 48 + 2 * k) >> 12 << 4 * k;
    out.d = f16_of(bits);
  }
};

}  // namespace

const BlockGrid& block_grid(QuantScheme scheme) {
  switch (scheme) {
    case QuantScheme::IQ2_XXS: {
      static const GridTable<256, 8> table(kIq2Xxs, kThree);
      return table.grid;
    }
    case QuantScheme::IQ2_XS: {
      static const GridTable<512, 8> table(kIq2Xs, kThree);
      return table.grid;
    }
    case QuantScheme::IQ2_S: {
      static const GridTable<1024, 8> table(kIq2S, kThree);
      return table.grid;
    }
    case QuantScheme::IQ3_XXS: {
      static const GridTable<256, 4> table(kIq3Xxs, kEight);
      return table.grid;
    }
    case QuantScheme::IQ3_S: {
      static const GridTable<512, 4> table(kIq3S, kOdd);
      return table.grid;
    }
    case QuantScheme::IQ1_S:
    case QuantScheme::IQ1_M: {
      static const GridTable<2048, 8> table(kIq1S, kSigned);
      return table.grid;
    }
    default: break;
  }
  throw Error(ErrorCode::InvalidArgument, concat_text(quant_scheme_name(scheme), " has no grid"));
}

GridBlock unpack_grid_block(const BlockLayout& l, const std::uint8_t* bytes) {
  GridUnpacker u{bytes};
  if (l.d_at >= 0)
    u.out.d = f16_of(u16_at(bytes + l.d_at));
  else
    u.split_unit();
  switch (l.scheme) {
    case QuantScheme::IQ2_XXS: u.iq2_xxs(); break;
    case QuantScheme::IQ2_XS: u.iq2_xs(); break;
    case QuantScheme::IQ2_S: u.iq2_s(); break;
    case QuantScheme::IQ3_XXS: u.iq3_xxs(); break;
    case QuantScheme::IQ3_S: u.iq3_s(); break;
    case QuantScheme::IQ1_S: u.iq1_s(); break;
    case QuantScheme::IQ1_M: u.iq1_m(); break;
    default: check(false, "the scheme has a grid");
  }
  return u.out;
}

}  // namespace rlx
