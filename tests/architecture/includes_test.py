"""The rules of includes.py catch what they should: small trees with one mistake each."""

import pathlib
import tempfile
import unittest

import includes


def found(files, public=()):
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return list(includes.violations(root, set(public)))


class Includes(unittest.TestCase):
    def test_accepts_folders_above_and_the_own_one(self):
        good = {
            "isochron/core/ids.h": "#include <vector>\n",
            "isochron/pack/first_fit.h": "",
            "isochron/pack/pack.cpp": '#include <fmt/format.h>\n#include "isochron/core/ids.h"\n'
            '#include "isochron/pack/first_fit.h"\n',
            "isochron/engine/model/rope.cpp": "#include <torch/torch.h>\n#include <ATen/ATen.h>\n"
            '#include "isochron/pack/first_fit.h"\n',
        }
        self.assertEqual(found(good, ["isochron/core/ids.h"]), [])

    def test_names_file_line_and_rule_of_an_include_from_below(self):
        bad = {"isochron/core/ids.h": '\n#include "isochron/pack/pack.h"\n'}
        self.assertEqual(
            found(bad),
            ["isochron/core/ids.h:2: includes isochron/pack/pack.h: core/ may include core only"],
        )

    def test_keeps_torch_out_of_the_planner(self):
        for name in ["torch/torch.h", "ATen/ATen.h", "c10/util/Exception.h", "cuda_runtime.h"]:
            bad = {"isochron/plan/plan.cpp": f"  #  include <{name}>\n"}
            self.assertEqual(len(found(bad)), 1, name)

    def test_keeps_the_checker_apart_from_what_it_checks(self):
        for folder in ["cost", "balance", "pack", "simulate", "plan"]:
            bad = {"isochron/check/check.cpp": f'#include "isochron/{folder}/x.h"\n'}
            self.assertIn("core, step, check only", found(bad)[0])
        good = {"isochron/check/check.cpp": '#include "isochron/step/step_plan.h"\n'}
        self.assertEqual(found(good), [])

    def test_keeps_third_party_and_internal_headers_out_of_public_ones(self):
        for include in ["<fmt/format.h>", "<nlohmann/json.hpp>", '"isochron/core/json.h"']:
            bad = {"isochron/core/batch.h": f"#include {include}\n"}
            self.assertEqual(len(found(bad, ["isochron/core/batch.h"])), 1, include)
            self.assertEqual(found(bad), [], include)  # fine in an internal one

    def test_rejects_unknown_folders_relative_paths_and_missing_headers(self):
        self.assertEqual(len(found({"isochron/utils/x.h": ""})), 1)
        self.assertEqual(len(found({"isochron/core/a.h": '#include "b.h"\n'})), 1)
        self.assertEqual(len(found({"isochron/core/a.h": '#include "isochron/util/b.h"\n'})), 1)
        self.assertEqual(len(found({"isochron/core/a.h": ""}, ["isochron/core/gone.h"])), 1)
        self.assertEqual(len(found({})), 1)


if __name__ == "__main__":
    unittest.main()
