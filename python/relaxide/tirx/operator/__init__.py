"""Operations on tiles, and what implements them."""
