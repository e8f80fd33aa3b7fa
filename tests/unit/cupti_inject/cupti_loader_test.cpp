// Each test in a process of its own: a library that was loaded once stays.
#include "cupti_inject/cupti_loader.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace xpu::inject {
namespace {

namespace fs = std::filesystem;

constexpr char kStub[] = XPU_STUB_FOLDER "/libcupti.so.13";

class CuptiLoader : public ::testing::Test {
 protected:
  // Runs `body` in a child; its failures are shown there and fail the test here.
  template <typename Body>
  void InChild(Body&& body) {
    EXPECT_EXIT(
        {
          body();
          _exit(HasFailure() ? 1 : 0);
        },
        ::testing::ExitedWithCode(0), "");
  }

  LoadedCupti loaded_;
  char reason_[1024] = "";
};

TEST_F(CuptiLoader, ChosenIsLoaded) {
  InChild([&] {
    ASSERT_TRUE(LoadCupti(kStub, 0, &loaded_, reason_, sizeof(reason_)));
    EXPECT_STREQ(loaded_.path, kStub);
    EXPECT_EQ(loaded_.version, 130001u);
    EXPECT_STREQ(loaded_.note, "");
    EXPECT_NE(loaded_.functions.flush_all, nullptr);
  });
}

TEST_F(CuptiLoader, MappedWinsOverChosen) {
  InChild([&] {
    ASSERT_NE(dlopen(kStub, RTLD_NOW | RTLD_LOCAL), nullptr);
    ASSERT_TRUE(LoadCupti("/nowhere/libcupti.so", 0, &loaded_, reason_, sizeof(reason_)));
    EXPECT_STREQ(loaded_.path, kStub);
    EXPECT_STREQ(loaded_.note,
                 "the program has loaded a libcupti of its own, which is used instead of "
                 "/nowhere/libcupti.so");
  });
}

TEST_F(CuptiLoader, NewerThanTheDriverIsRefused) {
  InChild([&] {
    EXPECT_FALSE(LoadCupti(kStub, 12040, &loaded_, reason_, sizeof(reason_)));
    EXPECT_EQ(std::string(reason_), std::string(kStub) + " is newer than the driver (CUDA 12.4)");
  });
}

// CUDA 11.8 has version 18 of CUPTI's API, 12.0 has 19.
TEST_F(CuptiLoader, LastOfCuda11FitsADriverOfCuda11) {
  InChild([&] {
    setenv("XPU_STUB_CUPTI_VERSION", "18", 1);
    EXPECT_TRUE(LoadCupti(kStub, 11080, &loaded_, reason_, sizeof(reason_))) << reason_;
    setenv("XPU_STUB_CUPTI_VERSION", "19", 1);
    EXPECT_FALSE(LoadCupti(kStub, 11080, &loaded_, reason_, sizeof(reason_)));
  });
}

TEST_F(CuptiLoader, LibraryThatIsNoCuptiIsRefused) {
  InChild([&] {
    EXPECT_FALSE(LoadCupti("libm.so.6", 0, &loaded_, reason_, sizeof(reason_)));
    EXPECT_NE(std::string(reason_).find("has no cuptiGetVersion"), std::string::npos) << reason_;
  });
}

// The layout of the Python wheels: nvidia/cuda_runtime/lib, nvidia/cuda_cupti/lib.
TEST_F(CuptiLoader, FoundBesideTheCudartOfTheProgram) {
  InChild([&] {
    const fs::path root = fs::temp_directory_path() / ("xpu-loader-" + std::to_string(getpid()));
    fs::create_directories(root / "cuda_runtime/lib");
    fs::create_directories(root / "cuda_cupti/lib");
    fs::copy_file(kStub, root / "cuda_cupti/lib/libcupti.so.13");
    fs::copy_file(XPU_STUB_CUDART, root / "cuda_runtime/lib/libcudart.so.13");
    ASSERT_NE(dlopen((root / "cuda_runtime/lib/libcudart.so.13").c_str(), RTLD_NOW), nullptr);
    EXPECT_TRUE(LoadCupti(nullptr, 13000, &loaded_, reason_, sizeof(reason_))) << reason_;
    const bool same = fs::equivalent(loaded_.path, root / "cuda_cupti/lib/libcupti.so.13");
    fs::remove_all(root);
    EXPECT_TRUE(same) << loaded_.path;
  });
}

// A Python process that has imported no CUDA package yet: torch with a static cudart, for example.
TEST_F(CuptiLoader, FoundInTheWheelsBesideAMappedPackage) {
  for (const char* wheel : {"nvidia/cu13/lib", "nvidia/cuda_cupti/lib"}) {
    InChild([&] {
      const fs::path root = fs::temp_directory_path() / ("xpu-loader-" + std::to_string(getpid()));
      const fs::path packages = root / "site-packages/old/dist-packages";
      fs::create_directories(packages / "package/lib");
      fs::create_directories(packages / wheel);
      fs::copy_file(kStub, packages / wheel / "libcupti.so.13");
      fs::copy_file(XPU_STUB_CUDART, packages / "package/lib/extension.so");
      ASSERT_NE(dlopen((packages / "package/lib/extension.so").c_str(), RTLD_NOW), nullptr);
      EXPECT_TRUE(LoadCupti(nullptr, 13000, &loaded_, reason_, sizeof(reason_))) << reason_;
      const bool same = fs::equivalent(loaded_.path, packages / wheel / "libcupti.so.13");
      fs::remove_all(root);
      EXPECT_TRUE(same) << loaded_.path;
    });
  }
}

TEST_F(CuptiLoader, WithoutOneTheFileThatWouldHelpIsNamed) {
  InChild([&] {
    // A machine may have one.
    if (LoadCupti(nullptr, 12040, &loaded_, reason_, sizeof(reason_))) return;
    EXPECT_STREQ(reason_,
                 "no libcupti found that fits the driver (CUDA 12.4): install libcupti.so.12, of "
                 "the CUDA Toolkit or the nvidia-cuda-cupti Python wheel, or choose one with "
                 "--cupti-lib");
  });
}

TEST_F(CuptiLoader, DriverOfAProcessWithoutOneIsUnknown) { EXPECT_EQ(DriverVersion(), 0u); }

}  // namespace
}  // namespace xpu::inject
