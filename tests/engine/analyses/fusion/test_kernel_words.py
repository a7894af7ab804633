import pytest

from engine.analyses.fusion.kernel_words import (
    FUSED,
    HELPER,
    OTHER,
    ascend_type_of,
    word_of_ascend,
    word_of_call,
    word_of_gpu_kernel,
)


@pytest.mark.parametrize(
    ("name", "type_name"),
    [
        ("aclnnMul_MulAiCore_Mul", "Mul"),
        ("aclnnMatmul_MatMulV3Common_MatMulV3", "MatMulV3"),
        ("trans_TransData_12", "TransData"),
        ("Conv2D4", "Conv2D"),
        ("Conv2DBackpropFilter6_MemSet", "MemSet"),
        ("RmsNorm", "RmsNorm"),
        ("MatMulV3", "MatMulV3"),
        ("3", ""),
    ],
)
def test_the_type_is_found_inside_a_kernel_name(name, type_name):
    assert ascend_type_of(name) == type_name


@pytest.mark.parametrize(
    ("op_type", "name", "word"),
    [
        ("Cast", "aclnnCast_CastAiCore_Cast", "cast"),
        ("Cast", "aclnnMaxDim_CastAiCore_Cast", HELPER),
        ("TensorMove", "aclnnInplaceCopy_TensorMoveAiCore_TensorMove", "copy"),
        ("TensorMove", "aclnnCat_TensorMoveAiCore_TensorMove", HELPER),
        ("TransData", "trans_TransData_1", HELPER),
        ("FlashAttentionScore", "aclnnFlashAttentionScore_FlashAttentionScore_Flash", FUSED),
        ("ForeachAddList", "aclnnForeachAddListV2_ForeachAddListV2_ForeachAddList", FUSED),
        ("Relu", "aclnnInplaceRelu_Relu_Relu", OTHER),
    ],
)
def test_a_helper_of_another_call_is_not_what_the_user_called(op_type, name, word):
    assert word_of_ascend(op_type, name) == word


def test_framework_calls_have_words_and_others_none():
    assert word_of_call("aten::add_") == "add"
    assert word_of_call("aten::_scaled_dot_product_flash_attention") == FUSED
    assert word_of_call("mylib::add") is None
    assert word_of_call("ProfilerStep#5") is None


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64>>(Params)", FUSED),
        ("attn_fwd", FUSED),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "matmul"),
        ("Cijk_Alik_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT256x128x64", "matmul"),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>>>", "mean"),
        ("void at::native::elementwise_kernel<128, 4, at::native::neg_kernel_cuda(at::TensorIteratorBase&)>", "neg"),
        ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false>(float*)", "softmax"),
        ("cunn_SoftMaxForward", "softmax"),
        ("my_custom_thing", OTHER),
    ],
)
def test_gpu_kernels_are_known_by_name(name, word):
    assert word_of_gpu_kernel(name) == word
