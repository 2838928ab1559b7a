#include "isochron/cost/model_shape.h"

#include <nanobind/stl/string_view.h>

#include "python/native/bindings.h"
#include "python/native/record.h"

namespace isochron::python {

void bind_model_shape(nb::module_& module) {
  using Shape = ModelShape;
  nb::class_<Shape> type(module, "ModelShape",
                         "The sizes of a decoder with grouped-query attention and SwiGLU, dense or "
                         "with experts: what parameters, FLOPs and memory are counted from.");
  add_record(type, "ModelShape", Attribute{"name", &Shape::name, "What the model is called."},
             Attribute{"hidden", &Shape::hidden, "Width of the model."},
             Attribute{"layers", &Shape::layers, "Layers."},
             Attribute{"heads", &Shape::heads, "Query heads."},
             Attribute{"kv_heads", &Shape::kv_heads, "Key and value heads."},
             Attribute{"head_dim", &Shape::head_dim, "Dimension of a head."},
             Attribute{"ffn", &Shape::ffn, "Width of a dense MLP."},
             Attribute{"vocabulary", &Shape::vocabulary, "Tokens of the vocabulary."},
             Attribute{"tied_head", &Shape::tied_head, "The output head is the embedding."},
             Attribute{"qkv_bias", &Shape::qkv_bias, "A bias on query, key and value."},
             Attribute{"output_bias", &Shape::output_bias, "A bias after attention."},
             Attribute{"mlp_bias", &Shape::mlp_bias, "A bias on a dense MLP."},
             Attribute{"qk_norm", &Shape::qk_norm, "A norm over each query and key head."},
             Attribute{"sparse_layers", &Shape::sparse_layers, "Layers with experts."},
             Attribute{"num_experts", &Shape::num_experts, "In a sparse layer."},
             Attribute{"experts_per_token", &Shape::experts_per_token, "Top-k."},
             Attribute{"moe_ffn", &Shape::moe_ffn, "Width of an expert."},
             Attribute{"shared_ffn", &Shape::shared_ffn, "Width of what every token passes."});
  module.def("model_preset", &model_preset, nb::arg("name"),
             "A shape by name, in any case. ValueError, with the nearest, for another.");
  module.def("model_names", &model_names, "The names of all presets.");
  module.def("model_shape_from_config", &model_shape_from_config, nb::arg("json_text"),
             "The shape that the text of a Hugging Face config.json describes.");
  module.def("num_parameters", &num_parameters, nb::arg("shape"),
             "All parameters, exact: embedding, head unless tied, norms, biases, every expert.");
}

}  // namespace isochron::python
