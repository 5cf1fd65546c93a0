"""What the pages share. Only this package and pages/ import streamlit."""
