// Runs a fuzz target on random bytes, without a fuzzer: driver SEED RUNS.
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::mt19937_64 random(std::strtoull(argv[1], nullptr, 10));
  std::vector<std::uint8_t> bytes;
  for (long run = std::atol(argv[2]); run > 0; --run) {
    bytes.resize(random() % 512);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}
