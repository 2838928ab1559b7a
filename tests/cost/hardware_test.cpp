#include "isochron/cost/hardware.h"

#include <gtest/gtest.h>

#include "tests/support/message_of.h"

namespace isochron {
namespace {

std::string name_for(std::string_view device) {
  const auto hardware = find_hardware(device);
  return hardware ? hardware->name : "none";
}

TEST(Hardware, IsFoundByTheLongestNameInsideADeviceName) {
  EXPECT_EQ(name_for("NVIDIA H100 80GB HBM3"), "h100");
  EXPECT_EQ(name_for("NVIDIA H200"), "h200");  // and not h20
  EXPECT_EQ(name_for("NVIDIA H20"), "h20");
  EXPECT_EQ(name_for("NVIDIA GB200"), "gb200");  // and not b200
  EXPECT_EQ(name_for("NVIDIA L40S"), "l40s");    // and not l40
  EXPECT_EQ(name_for("NVIDIA A100-SXM4-80GB"), "a100");
  EXPECT_EQ(name_for("NVIDIA GeForce RTX 3070 Ti"), "rtx-3070-ti");
  EXPECT_EQ(name_for("AMD Instinct MI300X"), "mi300x");
  EXPECT_EQ(name_for("Ascend910B4"), "ascend910");  // and not 910b
  EXPECT_EQ(name_for("cpu"), "cpu");
  EXPECT_EQ(name_for("h100 a100"), "h100");  // equally long: the last by name
  EXPECT_EQ(name_for("NVIDIA GeForce RTX 4090"), "none");
  EXPECT_EQ(name_for(""), "none");
}

TEST(Hardware, HasThePeaksThatMfuIsReportedAgainst) {
  EXPECT_EQ(hardware_preset("H100").peak_flops, 989e12);
  EXPECT_EQ(hardware_preset("h800").peak_flops, 989e12);
  EXPECT_EQ(hardware_preset("h200").peak_flops, 989e12);
  EXPECT_EQ(hardware_preset("h20").peak_flops, 148e12);
  EXPECT_EQ(hardware_preset("a100").peak_flops, 312e12);
  EXPECT_EQ(hardware_preset("a800").peak_flops, 312e12);
  EXPECT_EQ(hardware_preset("l40s").peak_flops, 362.05e12);
  EXPECT_EQ(hardware_preset("l40").peak_flops, 181.05e12);
  EXPECT_EQ(hardware_preset("l20").peak_flops, 119.5e12);
  EXPECT_EQ(hardware_preset("a40").peak_flops, 149.7e12);
  EXPECT_EQ(hardware_preset("RTX 3070 Ti").peak_flops, 21.75e12);
  EXPECT_EQ(hardware_preset("b200").peak_flops, 2.25e15);
  EXPECT_EQ(hardware_preset("gb200").peak_flops, 2.5e15);
  EXPECT_EQ(hardware_preset("mi300x").peak_flops, 1307e12);
  EXPECT_EQ(hardware_preset("mi350x").peak_flops, 2300e12);
  EXPECT_EQ(hardware_preset("mi355x").peak_flops, 2500e12);
  EXPECT_EQ(hardware_preset("910b").peak_flops, 354e12);
  EXPECT_EQ(hardware_preset("ascend910").peak_flops, 354e12);
  EXPECT_EQ(hardware_preset("a2g3").peak_flops, 354e12);
  EXPECT_EQ(hardware_preset("ascend950dt").peak_flops, 432e12);
  EXPECT_EQ(hardware_preset("cpu").peak_flops, 448e9);
}

TEST(Hardware, IsCompleteAndFoundByItsOwnName) {
  EXPECT_EQ(hardware_names().size(), 21u);
  for (const std::string& name : hardware_names()) {
    SCOPED_TRACE(name);
    const Hardware hardware = hardware_preset(name);
    EXPECT_EQ(name_for(name), name);
    EXPECT_GT(hardware.peak_flops, 0);
    EXPECT_GT(hardware.hbm_bytes, 0);
    EXPECT_GT(hardware.hbm_gb_per_s, 0);
    EXPECT_GE(hardware.devices_per_node, 1);
    EXPECT_GT(hardware.node_gb_per_s, 0);
    EXPECT_GT(hardware.network_gb_per_s, 0);
  }
}

TEST(Hardware, NamesTheNearest) {
  const std::string message = message_of([] { (void)hardware_preset("H10O"); });
  EXPECT_TRUE(message.starts_with(
      "[hardware] unknown hardware \"H10O\", did you mean \"h100\"? Known are h100, h800, "))
      << message;
}

}  // namespace
}  // namespace isochron
