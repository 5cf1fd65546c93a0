"""Small fits keep to one thread, and leave the process as it was."""

from __future__ import annotations

from threadpoolctl import threadpool_info, threadpool_limits

from cotlab.reliability.maps import single_blas_thread


def pools() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_linear_algebra_has_one_thread_in_the_block_and_what_it_had_after() -> None:
    with single_blas_thread():
        pass  # loads what is limited
    with threadpool_limits(2, user_api="blas"):
        before = pools()
        with single_blas_thread():
            assert set(pools()) == {1}
        assert pools() == before


def test_a_function_that_is_decorated_keeps_to_one_thread() -> None:
    assert set(single_blas_thread()(pools)()) == {1}
